# exercise: parallel.stages  fails: slowest stage  says: above the least
def stages(times, devices):
    mean, counts, filled = sum(times) / devices, [0], 0
    for place, time in enumerate(times):
        left, more = len(times) - place, devices - len(counts)
        if counts[-1] and more and (filled + time > mean or left <= more):
            counts.append(0)
            filled = 0
        counts[-1] += 1
        filled += time
    return counts
