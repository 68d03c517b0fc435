# exercise: cluster.max_flow  fails: right  says: first wrong at one way


def max_flow(links, source, sink):
    def rate(node):
        return sum(link[2] for link in links if node in link[:2])

    return min(rate(source), rate(sink))
