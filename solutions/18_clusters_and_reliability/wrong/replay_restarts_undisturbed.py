# exercise: cluster.replay  fails: right  says: while restarting


def replay(work, interval, cost, restart, failures):
    clock = saved = lost = 0
    coming = list(failures)
    while saved < work:
        stretch = min(interval, work - saved)
        end = clock + stretch + (cost if saved + stretch < work else 0)
        coming = [failure for failure in coming if failure >= clock]
        if not coming or coming[0] >= end:
            clock, saved = end, saved + stretch
            continue
        failure = coming.pop(0)
        lost += min(stretch, failure - clock)
        clock = failure + restart
    return [clock, lost]
