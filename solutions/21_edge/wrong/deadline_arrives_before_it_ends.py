# exercise: edge.deadline  fails: right  says: first wrong: slow


def deadline(arrivals, times, limit):
    ages, dropped, free, waiting = [], 0, 0, None
    for frame, now in enumerate(arrivals):
        if waiting is not None and free < now:
            free += times[waiting]
            ages.append(free - arrivals[waiting])
            waiting = None
        if free < now:
            free = now + times[frame]
            ages.append(free - now)
        else:
            dropped += waiting is not None
            waiting = frame
    if waiting is not None:
        ages.append(free + times[waiting] - arrivals[waiting])
    late = sum(age > limit for age in ages)
    return [len(ages) - late, late, dropped, max(ages)]
