# exercise: pytorch.clip  fails: right  says: short enough
import torch


def clip(grads, most):
    length = torch.stack(torch._foreach_norm(grads)).norm()
    torch._foreach_mul_(grads, most / (length + 1e-6))
