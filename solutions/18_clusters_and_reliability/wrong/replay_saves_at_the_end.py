# exercise: cluster.replay  fails: right  says: first wrong: none


def replay(work, interval, cost, restart, failures):
    clock = saved = lost = 0
    coming = list(failures)
    while saved < work:
        stretch = min(interval, work - saved)
        end = clock + stretch + cost
        if not coming or coming[0] >= end:
            clock, saved = end, saved + stretch
            continue
        failure = coming.pop(0)
        lost += min(stretch, failure - clock)
        clock = failure + restart
        while coming and coming[0] < clock:
            clock = coming.pop(0) + restart
    return [clock, lost]
