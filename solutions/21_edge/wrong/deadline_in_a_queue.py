# exercise: edge.deadline  fails: right  says: first wrong: slow


def deadline(arrivals, times, limit):
    free, ages = 0, []
    for at, needed in zip(arrivals, times):
        free = max(free, at) + needed
        ages.append(free - at)
    late = sum(age > limit for age in ages)
    return [len(ages) - late, late, 0, max(ages)]
