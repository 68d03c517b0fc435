# exercise: fleet.verify  fails: right  says: begins with


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
        else:
            return [*kept, choose(row)]
