# exercise: compress.serve  fails: matrix FLOPs  says: Is a product of B and A formed
import torch


def serve(x, weight, a, b, adapter, scale):
    merged = weight + scale * torch.bmm(b, a)
    return torch.bmm(merged[adapter], x[:, :, None])[:, :, 0]
