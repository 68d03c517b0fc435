# exercise: shard.gather_layers  fails: busiest sender  says: 4
import torch
import torch.distributed as dist


def gather_layers(x, slope, parts):
    ranks = dist.get_world_size()

    def whole(part):
        weights = torch.empty(len(part) * ranks, part.shape[1])
        dist.all_gather(list(weights.chunk(ranks)), part)
        return weights

    states = [x]
    for part in parts:
        states.append(torch.tanh(states[-1] @ whole(part)))
    slopes = []
    for number in reversed(range(len(parts))):
        weights = whole(parts[number])
        inner = slope * (1 - states[number + 1] ** 2)
        mine = states[number].T @ inner
        dist.all_reduce(mine)
        slopes.insert(0, mine.chunk(ranks)[dist.get_rank()] / ranks)
        slope = inner @ weights.T
    return [states[-1], *slopes]
