# exercise: parallel.dispatch  fails: bytes of all ranks  says: naive 73,728
import torch
import torch.distributed as dist


def dispatch(x, choice, weight, expert):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tokens = [torch.empty_like(x) for _ in range(ranks)]
    choices = [torch.empty_like(choice) for _ in range(ranks)]
    dist.all_gather(tokens, x)
    dist.all_gather(choices, choice)
    mine = torch.cat(choices) == rank
    done = torch.relu(torch.cat(tokens) @ expert) * mine[:, None]
    y = torch.empty_like(x)
    dist.reduce_scatter(y, list(done.chunk(ranks)))
    return weight[:, None] * y
