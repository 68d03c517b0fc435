# exercise: edge.energy  fails: right  says: energy(


def energy(modes, period, idle, sleep, battery):
    found = []
    for name, watts, seconds in modes:
        if seconds <= period:
            rest = period - seconds
            found.append((watts * seconds + idle * rest, name, "idle"))
            found.append((watts * seconds + sleep[0] * rest, name, "sleep"))
    joules, name, how = min(found)
    return [name, how, joules, battery * period / joules]
