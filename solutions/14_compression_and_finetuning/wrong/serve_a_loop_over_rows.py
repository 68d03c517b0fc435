# exercise: compress.serve  fails: launches  says: naive 96
import torch


def serve(x, weight, a, b, adapter, scale):
    found = []
    for row, i in zip(x.unbind(), adapter[:, None].unbind(), strict=True):
        found.append(weight @ row + scale * (b[i][0] @ (a[i][0] @ row)))
    return torch.stack(found)
