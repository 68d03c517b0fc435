# exercise: arch.issue  fails: right  says: of its


def issue(programs):
    shortest = min(map(len, programs))
    return [warp for _ in range(shortest) for warp in range(len(programs))]
