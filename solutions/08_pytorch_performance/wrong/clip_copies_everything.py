# exercise: pytorch.clip  fails: bytes moved  says: copy of all gradients
import torch


def clip(grads, most):
    length = torch.cat([g.reshape(-1) for g in grads]).norm()
    torch._foreach_mul_(grads, torch.clamp(most / (length + 1e-6), max=1.0))
