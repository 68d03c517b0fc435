# exercise: pytorch.clip  fails: right  says: asks for the value of a tensor
import torch


def clip(grads, most):
    length = torch.stack([g.norm() for g in grads]).norm()
    if length > most:
        for g in grads:
            g.mul_(most / (length + 1e-6))
