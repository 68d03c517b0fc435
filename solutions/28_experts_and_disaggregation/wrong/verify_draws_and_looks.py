# exercise: fleet.verify  fails: tokens  says: right, and too few tokens a round


def verify(tree, q, p, choose):
    node, kept = -1, []
    while True:
        kept.append(choose(p[node + 1]))
        children = [i for i, (parent, token) in enumerate(tree) if [parent, token] == [node, kept[-1]]]
        if not children:
            return kept
        node = children[0]
