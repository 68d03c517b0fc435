# exercise: fleet.verify  fails: tokens  says: right, and too few tokens a round


def verify(tree, q, p, choose):
    return [choose(p[0])]
