# exercise: edge.federated  fails: right  says: first wrong: some silent


def federated(weights, replies, bits):
    heard = [reply for reply in replies if reply]
    samples = sum(count for count, _ in heard)
    new = (
        [sum(count * w[i] for count, w in heard) / samples for i in range(len(weights))]
        if samples
        else weights
    )
    return [new, 4 * len(weights) * len(heard), -(-len(weights) * bits // 8) * len(heard)]
