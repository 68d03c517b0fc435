# exercise: fleet.route  fails: time to first token  says: naive 3


def route(blocks, replicas):
    return min(range(len(replicas)), key=lambda r: replicas[r]["queued"])
