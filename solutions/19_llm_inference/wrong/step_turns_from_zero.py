# exercise: kv.step  fails: right  says: keys
import math

import torch


def step(q, k, v, keys, values, there, window):
    heads, new, d = q.shape
    end, first, group = there + new, max(0, there + 1 - window), heads // len(k)
    at = torch.arange(there, end)
    keys[:, there:end] = turn(k, torch.arange(new))
    values[:, there:end] = v
    queries = turn(q, torch.arange(new)).reshape(len(k), group * new, d) / math.sqrt(d)
    scores = queries @ keys[:, first:end].transpose(1, 2)
    behind = at.repeat(group)[:, None] - torch.arange(first, end)
    scores = scores.masked_fill((behind < 0) | (behind >= window), -math.inf)
    return (torch.softmax(scores, -1) @ values[:, first:end]).reshape(heads, new, d)
