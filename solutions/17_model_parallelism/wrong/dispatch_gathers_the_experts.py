# exercise: parallel.dispatch  fails: bytes of all ranks  says: naive 73,728
import torch
import torch.distributed as dist


def dispatch(x, choice, weight, expert):
    experts = [torch.empty_like(expert) for _ in range(dist.get_world_size())]
    dist.all_gather(experts, expert)
    chosen = torch.stack(experts)[choice]
    return weight[:, None] * torch.relu(torch.einsum("tw,twv->tv", x, chosen))
