# exercise: parallel.exchange  fails: all-reduces  says: 0 of a bucket's bytes
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
    flat = torch.cat([(torch.zeros_like(w) if w.grad is None else w.grad).flatten() for w in weights])
    dist.all_reduce(flat)
    parts = (flat / dist.get_world_size()).split([w.numel() for w in weights])
    for weight, part in zip(weights, parts, strict=True):
        weight.grad = part.view_as(weight)
