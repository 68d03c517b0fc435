# exercise: kv.step  fails: bytes  says: repeated
import math

import torch


def step(q, k, v, keys, values, there, window):
    heads, new, d = q.shape
    end, first, group = there + new, max(0, there + 1 - window), heads // len(k)
    at = torch.arange(there, end)
    keys[:, there:end], values[:, there:end] = turn(k, at), v
    seen_keys = keys[:, first:end].repeat_interleave(group, 0)
    seen_values = values[:, first:end].repeat_interleave(group, 0)
    behind = at[:, None] - torch.arange(first, end)
    scores = turn(q, at) @ seen_keys.transpose(1, 2) / math.sqrt(d)
    scores = scores.masked_fill((behind < 0) | (behind >= window), -math.inf)
    return torch.softmax(scores, -1) @ seen_values
