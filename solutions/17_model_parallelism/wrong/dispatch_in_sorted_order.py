# exercise: parallel.dispatch  fails: right  says: y
import torch
import torch.distributed as dist


def dispatch(x, choice, weight, expert):
    order = torch.argsort(choice)
    leaving = torch.bincount(choice, minlength=dist.get_world_size())
    coming = torch.empty_like(leaving)
    dist.all_to_all_single(coming, leaving)
    leaving, coming = leaving.tolist(), coming.tolist()
    rows = torch.empty(sum(coming), x.shape[1])
    dist.all_to_all_single(rows, x[order], coming, leaving)
    back = torch.empty_like(x)
    dist.all_to_all_single(back, torch.relu(rows @ expert), leaving, coming)
    return weight[:, None] * back
