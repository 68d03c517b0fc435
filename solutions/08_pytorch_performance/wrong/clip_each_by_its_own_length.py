# exercise: pytorch.clip  fails: right  says: should be
import torch


def clip(grads, most):
    for g in grads:
        g.mul_(torch.clamp(most / (g.norm() + 1e-6), max=1.0))
