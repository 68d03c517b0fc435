# exercise: cluster.gang  fails: right  says: Passing must not delay


def gang(jobs, gpus):
    starts, t = [None] * len(jobs), 0

    def used(at):
        return sum(n for s, (_, n, d) in zip(starts, jobs) if s is not None and s <= at < s + d)

    while None in starts:
        queue = [i for i, job in enumerate(jobs) if starts[i] is None and job[0] <= t]
        while queue and used(t) + jobs[queue[0]][1] <= gpus:
            starts[queue.pop(0)] = t
        if queue:
            first, promised = jobs[queue[0]], t
            while used(promised) + first[1] > gpus:
                promised += 1
            for i in queue[1:]:
                beside = used(promised) + first[1] + jobs[i][1] <= gpus
                if used(t) + jobs[i][1] <= gpus and (t + jobs[i][2] <= promised or beside):
                    starts[i] = t
        t += 1
    return starts
