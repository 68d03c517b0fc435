# how: gathers partial results in three bytes
# exercise: parallel.mlp
# earns: 0
# says: should be
# slow: yes
import torch.distributed as dist


def packed(t):
    bits = t.detach().contiguous().view(torch.int32) + 128
    return bits.view(torch.uint8).reshape(-1, 4)[:, 1:].contiguous()


def unpacked(b, shape):
    whole = torch.zeros(b.numel() // 3, 4, dtype=torch.uint8)
    whole[:, 1:] = b.reshape(-1, 3)
    return whole.reshape(-1).view(torch.float32).reshape(shape)


def summed(t):
    """Everybody sends everything to everybody, in three bytes a number."""
    mine = packed(t)
    every = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(every, mine)
    return sum(unpacked(b, t.shape) for b in every)


import torch.nn.functional as F


def mlp(x, a, b, slope):
    part = F.gelu(x @ a) @ b
    y = summed(part)
    part.backward(slope)
    return [y, summed(x.grad), a.grad, b.grad]
