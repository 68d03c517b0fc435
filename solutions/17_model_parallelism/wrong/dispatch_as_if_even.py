# exercise: parallel.dispatch  fails: right  says: stopped
import torch
import torch.distributed as dist


def dispatch(x, choice, weight, expert):
    order = torch.argsort(choice)
    rows, back, y = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
    dist.all_to_all_single(rows, x[order])
    dist.all_to_all_single(back, torch.relu(rows @ expert))
    y[order] = back
    return weight[:, None] * y
