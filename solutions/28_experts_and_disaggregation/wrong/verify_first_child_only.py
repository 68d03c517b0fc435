# exercise: fleet.verify  fails: tokens  says: do you judge all siblings


def verify(tree, q, p, choose):
    node, row, kept = -1, p[0], []
    while True:
        for child, (parent, token) in enumerate(tree):
            if parent != node:
                continue
            keep = min(1.0, row[token] / q[node + 1][token])
            if choose([keep, 1 - keep]) == 0:
                kept.append(token)
                node, row = child, p[child + 1]
                break
            left = [max(0.0, a - b) for a, b in zip(row, q[node + 1], strict=True)]
            return [*kept, choose([x / sum(left) for x in left])]
        else:
            return [*kept, choose(row)]
