# exercise: edge.energy  fails: right  says: first wrong: race


def energy(modes, period, idle, sleep, battery):
    name, watts, seconds = min((mode for mode in modes if mode[2] <= period), key=lambda mode: mode[1])
    rest = period - seconds
    ways = [
        (watts * seconds + idle * rest, "idle"),
        (watts * seconds + sleep[0] * rest + sleep[1], "sleep"),
    ]
    joules, how = min(ways)
    return [name, how, joules, battery * period / joules]
