# exercise: parallel.stages  fails: right  says: each stage needs one
def stages(times, devices):
    limit = max(times)
    while True:
        counts, filled = [0], 0
        for time in times:
            if filled + time > limit:
                counts.append(0)
                filled = 0
            counts[-1] += 1
            filled += time
        if len(counts) <= devices:
            return counts + [0] * (devices - len(counts))
        limit += 1
