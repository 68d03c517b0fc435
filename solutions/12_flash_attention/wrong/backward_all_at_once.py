# exercise: attention.backward  fails: peak memory  says: queries × keys elements
import torch


def backward(q, k, v, out, lse, dout, tile):
    weights = torch.exp(q @ k.t() - lse[:, None])
    slopes = weights * (dout @ v.t() - (dout * out).sum(1)[:, None])
    return slopes @ k, slopes.t() @ q, weights.t() @ dout
