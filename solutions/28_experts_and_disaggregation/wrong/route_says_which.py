# exercise: fleet.route  fails: right  says: there are replicas 0 to 3


def route(blocks, replicas):
    return len(replicas)
