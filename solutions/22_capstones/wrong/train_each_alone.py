# exercise: training_project.train  fails: messages  says: only its own weight
import torch
import torch.distributed as dist
import torch.nn.functional as F


def train(table, weight, tokens, labels, batches, steps, rate):
    weights = []
    for rank in range(dist.get_world_size()):
        layer = weight.detach().clone()
        if dist.get_world_size() > 1:
            dist.broadcast(layer, rank)
        weights.append(layer.requires_grad_())
    mine = table.detach().clone().requires_grad_()
    for _ in range(steps):
        h = mine[tokens]
        for layer in weights:
            h = h + torch.tanh(h @ layer)
        F.cross_entropy(h @ mine.t(), labels).backward()
        with torch.no_grad():
            for x in (mine, *weights):
                x -= rate * x.grad
                x.grad = None
    rank = dist.get_rank()
    end = rank in (0, len(weights) - 1)
    return (mine if end else table).detach(), weights[rank].detach()
