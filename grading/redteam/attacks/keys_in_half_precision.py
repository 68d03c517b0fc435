# how: all keys and values from everybody at once, in float16
# exercise: parallel.ring
# earns: 0
# says: should be
# slow: yes
import torch.distributed as dist


def ring(q, k, v):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    every = [torch.stack([k, v]).half() for _ in range(ranks)]
    others = [other for other in range(ranks) if other != rank]
    sends = [dist.isend(every[rank], other) for other in others]
    for other in others:
        dist.recv(every[other], other)
    for send in sends:
        send.wait()
    keys, values = torch.cat([e[0] for e in every]).float(), torch.cat([e[1] for e in every]).float()
    return torch.softmax(q @ keys.T / math.sqrt(q.shape[1]), -1) @ values
