# exercise: kv.rolled  fails: right  says: keys
import math

import torch


def rolled(q, k, v, keys, values, there):
    room, d = keys.shape[1], q.shape[-1]
    slot, held, at = there % room, min(there + 1, room), torch.tensor([there])
    keys[:, slot : slot + 1], values[:, slot : slot + 1] = turn(k, at), v
    queries = turn(q, at).reshape(len(k), -1, d) / math.sqrt(d)
    weights = torch.softmax(queries @ keys[:, :held].transpose(1, 2), -1)
    return (weights @ values[:, :held]).reshape(q.shape)
