"""Lockstep hides missing barriers: a small case runs again, warp after warp, and a race check looks on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab import device as devices
from gpulab import simt
from gpulab.observe import Race, Races

from . import cases, messages
from .compare import index_words, value_words
from .registry import Reference
from .results import first_mismatch
from .run import run
from .spec import Case, Exercise
from .verdict import Detail

SEED = 1  # of the order in which warps run


def race_case(exercise: Exercise) -> Case:
    """The case that runs under both schedules."""
    if exercise.race_case is None:
        return exercise.cases[0]
    return next(case for case in exercise.cases if case.name == exercise.race_case)


def examine(exercise: Exercise, fn: Callable[..., Any], reference: Reference) -> tuple[Detail, ...]:
    """What depends on the order of warps, in words; empty if nothing was found."""
    case = race_case(exercise)
    other, said = _other_order(exercise, case, fn, reference)
    race = _race(exercise, case, fn)
    if race is None:
        return other
    return (Detail(str(race)), *((Detail(said),) if said else ()))


def _race(exercise: Exercise, case: Case, fn: Callable[..., Any]) -> Race | None:
    """The first race in shared memory, whether or not it went wrong."""
    watchers: list[Races] = []

    def watch(launch: devices.Launch) -> Races:
        watchers.append(Races())
        return watchers[-1]

    run(exercise, case, fn, cases.arguments(exercise, case), devices.current().observed(watch))
    return next((race for watcher in watchers for race in watcher.findings), None)


def _other_order(
    exercise: Exercise, case: Case, fn: Callable[..., Any], reference: Reference
) -> tuple[tuple[Detail, ...], str]:
    """What goes wrong when warps run one after the other: on its own, and as a sentence behind a race."""
    serial = devices.current().using(schedule=simt.warp_serial(SEED))
    outcome = run(exercise, case, fn, cases.arguments(exercise, case), serial)
    if outcome.trouble:
        return (Detail(messages.trouble_in_other_order(case.name)), *outcome.trouble), ""
    wrong = first_mismatch(exercise, case, outcome, reference)
    if wrong is None:
        return (), ""
    where = index_words(wrong.array, wrong.first)
    right = value_words(wrong.expected[wrong.first].astype(wrong.got.dtype))
    other = value_words(wrong.got[wrong.first])
    alone = Detail(messages.order_matters(case.name, where, right, other))
    return (alone,), messages.also_wrong(where, right, other)
