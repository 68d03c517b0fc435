"""Lockstep hides missing barriers: a small case runs again, warp after warp in two orders, and a race check
looks on. It looks on at the last case, too: a small one may have a single warp."""

from __future__ import annotations

from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.observe import Race, Races
from gpulab.simulator.observe.synchronisation import MissedBarrier, MixedBarriers, Synchronisation

from . import messages, pictures
from .compare import index_words, pair_words
from .diagnose import source
from .launched import Launched
from .parts import Detail
from .spec import Case

# Of the orders in which blocks and warps run. The first leaves up to 4 of them in order. In the second, the
# first of up to 32 is never first and the last never last, so a result that relies on either goes wrong.
SEEDS = (1, 82)


def race_case(answer: Launched) -> Case:
    """The case that runs under both schedules."""
    cases = answer.exercise.cases
    return next((case for case in cases if case.name == answer.race_case), cases[0])


def examine(answer: Launched) -> tuple[tuple[Detail, ...], tuple[Detail, ...]]:
    """What depends on the order of warps, in words, empty if nothing was found; and remarks that cost
    nothing."""
    case = race_case(answer)
    other, said = _other_order(answer, case)
    race, missed = _watched(answer, case)
    if race is None and (last := answer.exercise.cases[-1]).name != case.name:
        case = last
        race, missed_there = _watched(answer, case)
        missed = missed or missed_there
    remarks = (Detail(_missed_words(missed)), *source(missed.location)) if missed else ()
    if race is None:
        return other, remarks
    drawn = Detail("", picture=lambda: pictures.raced(race))
    words = Detail(race_words(race, answer.exercise.detective))
    return (words, *((Detail(said),) if said else ()), drawn, *pictures.watch_race(race, case)), remarks


def race_words(race: Race, detective: bool) -> str:
    """A race in words; without its cure in a detective, whose question that is."""
    return f"{race.sighting}\n{messages.detective_race()}" if detective else str(race)


def _missed_words(missed: MissedBarrier | MixedBarriers) -> str:
    if isinstance(missed, MixedBarriers):
        return str(missed)
    line = missed.location.line if missed.location else 0
    return messages.barrier_without_some(missed.came, missed.threads, line)


def _watched(answer: Launched, case: Case) -> tuple[Race | None, MissedBarrier | MixedBarriers | None]:
    """The first race in shared memory, whether or not it went wrong, and the first barrier that threads
    skipped by returning or took for another one."""
    races: list[Races] = []
    barriers: list[Synchronisation] = []

    def watch_races(launch: devices.Launch) -> Races:
        races.append(Races(arrays=launch.arrays, replicated=launch.kernel.replicates))
        return races[-1]

    def watch_barriers(launch: devices.Launch) -> Synchronisation:
        barriers.append(Synchronisation())
        return barriers[-1]

    device = devices.current()
    with device.observed(watch_barriers):
        answer.run(case, device.observed(watch_races))
    race = next((race for watcher in races for race in watcher.findings), None)
    return race, next((finding for watcher in barriers for finding in watcher.findings), None)


def _other_order(answer: Launched, case: Case) -> tuple[tuple[Detail, ...], str]:
    """What goes wrong when warps run one after the other: on its own, and as a sentence behind a race."""
    for seed in SEEDS:
        outcome = answer.run(case, devices.current().using(schedule=simt.warp_serial(seed)))
        if outcome.trouble:
            return (Detail(messages.trouble_in_other_order(case.name)), *outcome.trouble), ""
        wrong = answer.first_mismatch(case, outcome)
        if wrong is not None:
            where = index_words(wrong.array, wrong.first)
            expected = wrong.expected[wrong.first].astype(wrong.got.dtype)
            right, other = pair_words(expected, wrong.got[wrong.first])
            alone = Detail(messages.order_matters(case.name, where, right, other))
            return (alone,), messages.also_wrong(where, right, other)
    return (), ""
