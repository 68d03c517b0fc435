# exercise: arch.issue  fails: right  says: no instruction left


def issue(programs):
    longest = max(map(len, programs))
    return [warp for _ in range(longest + 1) for warp in range(len(programs))]
