# how: np.average with weights over the clients that answered
# exercise: edge.federated
import numpy as np


def federated(weights, replies, bits):
    answered = [r for r in replies if r is not None and r]
    down = len(replies) * len(weights) * 4
    up = len(answered) * ((len(weights) * bits + 7) // 8)
    counts = [n for n, _ in answered]
    if not sum(counts):
        return [list(weights), down, up]
    new = np.average([theirs for _, theirs in answered], axis=0, weights=counts)
    return [new.tolist(), down, up]
