# exercise: shard.gather_layers  fails: gathered again  says: 4
import torch
import torch.distributed as dist


def gather_layers(x, slope, parts):
    ranks = dist.get_world_size()

    def whole(part):
        weights = torch.empty(len(part) * ranks, part.shape[1])
        dist.all_gather(list(weights.chunk(ranks)), part)
        return weights

    layers = [whole(part) for part in parts]
    states = [x]
    for weights in layers:
        states.append(torch.tanh(states[-1] @ weights))
    slopes = []
    for number in reversed(range(len(parts))):
        inner = slope * (1 - states[number + 1] ** 2)
        mine = torch.empty_like(parts[number])
        dist.reduce_scatter(mine, list((states[number].T @ inner).chunk(ranks)))
        slopes.insert(0, mine / ranks)
        slope = inner @ layers[number].T
    return [states[-1], *slopes]
