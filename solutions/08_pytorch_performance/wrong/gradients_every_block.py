# exercise: pytorch.gradients  fails: peak memory  says: what the checkpoints hold
import torch
from torch.utils.checkpoint import checkpoint


def gradients(weights, x):
    def one(h, w):
        return h + torch.tanh(h @ w)

    h = x
    for w in weights:
        h = checkpoint(one, h, w, use_reentrant=False)
    h.square().mean().backward()
