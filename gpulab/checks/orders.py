"""Lockstep hides missing barriers: a small case runs again, warp after warp in two orders, and a race check
looks on. It looks on at the last case, too: a small one may have a single warp."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpulab.analysis.sanitizer import Tools
from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.observe import Race, Races
from gpulab.simulator.observe.synchronisation import MissedBarrier, MixedBarriers, Synchronisation
from gpulab.simulator.ptx.ir import Location

from . import cases, messages, pictures
from .compare import index_words, pair_words
from .diagnose import source
from .launched import Launched
from .parts import Detail
from .spec import Case

# Of the orders in which blocks and warps run. The first leaves up to 4 of them in order. In the second, the
# first of up to 32 is never first and the last never last, so a result that relies on either goes wrong.
SEEDS = (1, 82)

# Where one of these is in a kernel, copy engines or tensor cores use memory beside the threads. What is wrong
# between them may give the right result here every time, and now and then a wrong one on a GPU.
ASYNCHRONOUS = frozenset({"cp", "wgmma", "tcgen05"})

ARITHMETIC = frozenset({"add", "sub", "mul", "fma", "div"})


def race_case(answer: Launched) -> Case:
    """The case that runs under both schedules."""
    there = answer.exercise.cases
    return next((case for case in there if case.name == answer.race_case), there[0])


def examine(answer: Launched) -> tuple[tuple[Detail, ...], tuple[Detail, ...]]:
    """What depends on the order of warps, in words, empty if nothing was found; and remarks that cost
    nothing."""
    case = race_case(answer)
    other, said = _other_order(answer, case)
    race, missed, asynchronous, wide = _watched(answer, case)
    if race is None and (last := answer.exercise.cases[-1]).name != case.name:
        case = last
        race, missed_there, asynchronous, wide = _watched(answer, case)
        missed = missed or missed_there
    remarks = (Detail(_missed_words(missed)), *source(missed.location)) if missed else ()
    if wide and not _has_float64(answer, case):
        remarks += (Detail(messages.computes_in_float64(wide.line)), *source(wide))
    if race is None:
        return other or (_hazard(answer, case) if asynchronous else ()), remarks
    drawn = Detail("", picture=lambda: pictures.raced(race))
    words = Detail(race_words(race, answer.exercise.detective))
    return (words, *((Detail(said),) if said else ()), drawn, *pictures.watch_race(race, case)), remarks


def in_other_orders(answer: Launched) -> tuple[Detail, ...]:
    """What goes wrong when warps run one after the other, in words; empty if nothing does."""
    return _other_order(answer, race_case(answer))[0]


def race_words(race: Race, detective: bool) -> str:
    """A race in words; without its cure in a detective, whose question that is."""
    return f"{race.sighting}\n{messages.detective_race()}" if detective else str(race)


def _missed_words(missed: MissedBarrier | MixedBarriers) -> str:
    if isinstance(missed, MixedBarriers):
        return str(missed)
    line = missed.location.line if missed.location else 0
    return messages.barrier_without_some(missed.came, missed.threads, line)


class Watched(NamedTuple):
    """The first race in shared memory, whether or not it went wrong, the first barrier that threads skipped
    by returning or took for another one, whether copy engines or tensor cores took part, and the first place
    that computes in float64."""

    race: Race | None
    missed: MissedBarrier | MixedBarriers | None
    asynchronous: bool
    wide: Location | None


def _watched(answer: Launched, case: Case) -> Watched:
    races: list[Races] = []
    launches: list[devices.Launch] = []
    barriers: list[Synchronisation] = []

    def watch_races(launch: devices.Launch) -> Races:
        launches.append(launch)
        races.append(Races(arrays=launch.arrays, replicated=launch.kernel.replicates))
        return races[-1]

    def watch_barriers(launch: devices.Launch) -> Synchronisation:
        barriers.append(Synchronisation())
        return barriers[-1]

    device = devices.current()
    with device.observed(watch_barriers):
        answer.run(case, device.observed(watch_races))
    race = next((race for watcher in races for race in watcher.findings), None)
    missed = next((finding for watcher in barriers for finding in watcher.findings), None)
    instructions = [i for launch in launches for i in device.program(launch.kernel).instructions]
    wide = next((i.location for i in instructions if "f64" in i.parts and i.parts[0] in ARITHMETIC), None)
    return Watched(race, missed, any(i.parts[0] in ASYNCHRONOUS for i in instructions), wide)


def _has_float64(answer: Launched, case: Case) -> bool:
    """Whether an argument of the exercise is in float64, so that kernels may well compute in it."""
    return any(argument.value.dtype == np.float64 for argument in cases.of(answer, case))


def _hazard(answer: Launched, case: Case) -> tuple[Detail, ...]:
    """The first thing that is wrong between threads and copy engines or tensor cores, in words."""
    tools = Tools(devices.current())
    answer.run(case, tools.standing())
    found = tools.hazards()[:1]
    return tuple(Detail(str(each.puzzle() if answer.exercise.detective else each)) for each in found)


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
