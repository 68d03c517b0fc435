# exercise: pytorch.gradients  fails: matrix FLOPs  says: computed forward
import torch
from torch.utils.checkpoint import checkpoint


def gradients(weights, x):
    def stretch(h, *some):
        if len(some) == 1:
            return h + torch.tanh(h @ some[0])
        half = len(some) // 2
        h = checkpoint(stretch, h, *some[:half], use_reentrant=False)
        return checkpoint(stretch, h, *some[half:], use_reentrant=False)

    stretch(x, *weights).square().mean().backward()
