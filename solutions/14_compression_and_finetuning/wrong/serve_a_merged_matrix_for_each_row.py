# exercise: compress.serve  fails: matrix FLOPs  says: Do you multiply B by A
import torch


def serve(x, weight, a, b, adapter, scale):
    merged = weight + scale * torch.bmm(b, a)
    return torch.bmm(merged[adapter], x[:, :, None])[:, :, 0]
