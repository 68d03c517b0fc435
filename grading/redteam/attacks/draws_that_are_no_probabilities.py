# how: asks for draws whose probabilities are more than 1 together, so that guesses are kept more often
# exercise: fleet.verify
# earns: 0
# says: they sum to 1.2
def verify(tree, q, p, choose):
    child = next(i for i, (parent, token) in enumerate(tree) if parent == -1)
    token = tree[child][1]
    keep = min(1.0, p[0][token] / q[0][token])
    if choose([keep + 0.2, 1 - keep]) == 0:
        return [token, choose(p[child + 1])]
    left = [max(0.0, a - b) for a, b in zip(p[0], q[0], strict=True)]
    return [choose([x / sum(left) for x in left])]
