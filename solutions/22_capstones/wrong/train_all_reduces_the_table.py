# exercise: training_project.train  fails: bytes  says: which other ranks receive
import torch
import torch.distributed as dist
import torch.nn.functional as F


def train(table, weight, tokens, labels, batches, steps, rate):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    table, weight = (x.detach().clone().requires_grad_() for x in (table, weight))
    parts = list(zip(tokens.chunk(batches), labels.chunk(batches), strict=True))
    shape = len(tokens) // batches, len(weight)
    held, sends = {}, []

    def forward(number):
        words, wanted = parts[number]
        if rank == 0:
            came, h = None, table[words]
        else:
            came = torch.empty(shape)
            dist.recv(came, rank - 1)
            h = came.requires_grad_()
        h = h + torch.tanh(h @ weight)
        if rank == last:
            h = F.cross_entropy(h @ table.t(), wanted) / batches
        else:
            sends.append(dist.isend(h.detach(), rank + 1))
        held[number] = came, h

    def backward(number):
        came, h = held.pop(number)
        slope = None
        if rank < last:
            slope = torch.empty(shape)
            dist.recv(slope, rank + 1)
        h.backward(slope)
        if rank > 0:
            sends.append(dist.isend(came.grad, rank - 1))

    for _ in range(steps):
        warm = min(last - rank, batches)
        for number in range(warm):
            forward(number)
        for number in range(batches):
            if warm + number < batches:
                forward(warm + number)
            backward(number)
        for send in sends:
            send.wait()
        sends.clear()
        if table.grad is None:
            table.grad = torch.zeros_like(table)
        dist.all_reduce(table.grad)
        with torch.no_grad():
            for x in (table, weight):
                if x.grad is not None:
                    x -= rate * x.grad * (x is weight or rank in (0, last))
                    x.grad = None
    return table.detach(), weight.detach()
