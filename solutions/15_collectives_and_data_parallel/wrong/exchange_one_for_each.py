# exercise: parallel.exchange  fails: all-reduces  says: fit into one bucket
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
    for weight in reversed(weights):
        total = torch.zeros_like(weight) if weight.grad is None else weight.grad
        dist.all_reduce(total)
        weight.grad = total / dist.get_world_size()
