# exercise: edge.energy  fails: right  says: energy(


def energy(modes, period, idle, sleep, battery):
    name, watts, seconds = min(
        (mode for mode in modes if mode[2] <= period), key=lambda mode: mode[1] * mode[2]
    )
    rest = period - seconds
    idled = watts * seconds + idle * rest
    slept = watts * seconds + sleep[0] * rest + sleep[1]
    return [
        name,
        "idle" if idled < slept else "sleep",
        min(idled, slept),
        battery * period / min(idled, slept),
    ]
