# exercise: parallel.exchange  fails: right  says: should be
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
    for weight in reversed(weights):
        if filled[-1] and sum(w.nbytes for w in filled[-1]) + weight.nbytes > capacity:
            filled.append([])
        filled[-1].append(weight)
    for bucket in filled:
        grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in bucket]
        flat = torch.cat([grad.flatten() for grad in grads])
        dist.all_reduce(flat)
        for weight, part in zip(bucket, flat.split([w.numel() for w in bucket]), strict=True):
            weight.grad = part.view_as(weight)
