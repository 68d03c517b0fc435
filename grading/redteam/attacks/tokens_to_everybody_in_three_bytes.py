# how: sends every token to everybody, in three bytes
# exercise: parallel.dispatch
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


def dispatch(x, choice, weight, expert):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    mine = packed(x)
    sizes = [torch.empty(1, dtype=torch.int64) for _ in range(ranks)]
    dist.all_gather(sizes, torch.tensor([len(x)]))
    every = [torch.empty(int(s) * x.shape[1], 3, dtype=torch.uint8) for s in sizes]
    dist.all_gather(every, mine)
    made = [torch.relu(unpacked(b, (-1, x.shape[1])) @ expert) for b in every]
    back = [torch.empty(x.numel(), 3, dtype=torch.uint8) for _ in range(ranks)]
    dist.all_to_all(back, [packed(m) for m in made])
    rows = torch.stack([unpacked(b, x.shape) for b in back])
    y = rows[choice, torch.arange(len(x))]
    return weight[:, None] * y
