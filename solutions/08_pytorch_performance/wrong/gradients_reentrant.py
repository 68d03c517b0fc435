# exercise: pytorch.gradients  fails: right  says: does not require grad
import torch
from torch.utils.checkpoint import checkpoint


def gradients(weights, x):
    def stretch(h):
        for w in weights:
            h = h + torch.tanh(h @ w)
        return h

    checkpoint(stretch, x, use_reentrant=True).square().mean().backward()
