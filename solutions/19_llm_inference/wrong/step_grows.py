# exercise: kv.step  fails: bytes  says: copied
import math

import torch


def step(q, k, v, keys, values, there, window):
    heads, new, d = q.shape
    at, group = torch.arange(there, there + new), heads // len(k)
    all_keys = torch.cat([keys[:, :there], turn(k, at)], 1)
    all_values = torch.cat([values[:, :there], v], 1)
    keys[:, : there + new], values[:, : there + new] = all_keys, all_values
    queries = turn(q, at).reshape(len(k), group * new, d) / math.sqrt(d)
    behind = at.repeat(group)[:, None] - torch.arange(there + new)
    scores = (queries @ all_keys.transpose(1, 2)).masked_fill((behind < 0) | (behind >= window), -math.inf)
    return (torch.softmax(scores, -1) @ all_values).reshape(heads, new, d)
