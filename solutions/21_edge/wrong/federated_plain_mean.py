# exercise: edge.federated  fails: right  says: first wrong: skewed


def federated(weights, replies, bits):
    heard = [theirs for _, theirs in filter(None, replies)]
    new = [sum(w) / len(heard) for w in zip(*heard)] if heard else weights
    return [new, 4 * len(weights) * len(replies), -(-len(weights) * bits // 8) * len(heard)]
