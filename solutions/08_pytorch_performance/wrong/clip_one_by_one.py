# exercise: pytorch.clip  fails: launches  says: `mul_` (148 calls
import torch


def clip(grads, most):
    length = torch.stack([g.norm() for g in grads]).norm()
    factor = torch.clamp(most / (length + 1e-6), max=1.0)
    for g in grads:
        g.mul_(factor)
