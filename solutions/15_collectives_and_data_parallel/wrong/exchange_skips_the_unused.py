# exercise: parallel.exchange  fails: right  says: is None
import torch
import torch.distributed as dist


def loss(weights, x):
    tied, branch = weights[0], weights[1 + dist.get_rank() % 2]
    h = torch.tanh(x @ tied)
    for weight in weights[3:]:
        h = torch.tanh(h @ weight)
    return (h @ branch @ tied.T).square().mean()


def exchange(weights, x, capacity):
    loss(weights, x).backward()
    filled = [[]]
    for weight in reversed([w for w in weights if w.grad is not None]):
        if filled[-1] and sum(w.nbytes for w in filled[-1]) + weight.nbytes > capacity:
            filled.append([])
        filled[-1].append(weight)
    for bucket in filled:
        flat = torch.cat([w.grad.flatten() for w in bucket])
        dist.all_reduce(flat)
        parts = (flat / dist.get_world_size()).split([w.numel() for w in bucket])
        for weight, part in zip(bucket, parts, strict=True):
            weight.grad = part.view_as(weight)
