# exercise: kv.rolled  fails: right  says: 8 slots, 8 there
import math

import torch


def rolled(q, k, v, keys, values, there):
    room, d = keys.shape[1], q.shape[-1]
    slot = there % room
    keys[:, slot : slot + 1], values[:, slot : slot + 1] = k, v
    held = min(there + 1, room)
    positions = torch.arange(held)
    turned = turn(keys[:, :held], positions)
    queries = turn(q, torch.tensor([slot])).reshape(len(k), -1, d) / math.sqrt(d)
    weights = torch.softmax(queries @ turned.transpose(1, 2), -1)
    return (weights @ values[:, :held]).reshape(q.shape)
