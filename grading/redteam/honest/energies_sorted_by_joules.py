# how: candidates built by itertools.product and sorted, with a dataclass for each
# exercise: edge.energy
from dataclasses import dataclass
from itertools import product


@dataclass(order=True)
class Way:
    joules: float
    mode: str
    how: str


def energy(modes, period, idle, sleep, battery):
    power, wake = sleep
    ways = []
    for (name, watts, seconds), how in product(modes, ("idle", "sleep")):
        rest = period - seconds
        if rest < 0:
            continue
        between = idle * rest if how == "idle" else power * rest + wake
        ways.append(Way(watts * seconds + between, name, how))
    best = sorted(ways)[0]
    return [best.mode, best.how, best.joules, battery / best.joules * period]
