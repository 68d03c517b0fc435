# exercise: edge.energy  fails: right  says: first wrong: in time


def energy(modes, period, idle, sleep, battery):
    found = []
    for name, watts, seconds in modes:
        rest = max(0, period - seconds)
        found.append((watts * seconds + idle * rest, name, "idle"))
        found.append((watts * seconds + sleep[0] * rest + sleep[1], name, "sleep"))
    joules, name, how = min(found)
    return [name, how, joules, battery * period / joules]
