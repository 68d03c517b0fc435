# exercise: cluster.max_flow  fails: right  says: first wrong:


def max_flow(links, source, sink):
    return min(sum(r for a, b, r in links if a == source), sum(r for a, b, r in links if b == sink))
