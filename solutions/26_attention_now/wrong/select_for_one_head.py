# exercise: modern.select  fails: right  says: should be
import torch


def select(q, k, v, means, keep):
    worth = torch.softmax(q @ means.t(), dim=1)[0]
    best = worth.topk(keep).indices
    keys, values = (x.view(-1, 64, x.shape[1])[best].flatten(0, 1) for x in (k, v))
    return torch.softmax(q @ keys.t(), dim=1) @ values
