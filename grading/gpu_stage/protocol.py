"""How one answer is timed beside the reference. Pure: the two sides, the contents and the clock are given.

Both sides are processes of their own, so that no expected result is where a submission's kernels could find
it. They take turns, on the same contents, which are new in every turn; each turn's results are checked, so
there is nothing to gain from remembering, from working only now and then, or from noticing that one is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, Protocol

import numpy as np

from grading.core import texts
from grading.gpu_stage.statistics import Interval, Pair, speed

Arrays = Sequence[np.ndarray]


class Trouble(Exception):
    """A side came to no result; the text says why."""


class Lost(Trouble):
    """… and nobody can tell whose fault that is."""


@dataclass(frozen=True)
class Turn:
    """One run of one side, in seconds. `arrays` are what it left behind.

    `seconds` is what the device says of the launches, `flush` of the clearing of its cache before them;
    `waited` is what the host's clock says of both together, until the device had nothing left to do.
    """

    seconds: float
    flush: float
    waited: float
    arrays: list[np.ndarray]

    @property
    def unseen(self) -> float:
        """What the device's own times do not tell."""
        return self.waited - self.flush - self.seconds


class Side(Protocol):
    """The launches of one program, on a device."""

    def run(self, arrays: Arrays) -> Turn:
        """Raises Trouble."""
        ...


@dataclass(frozen=True)
class Settings:
    """How much is measured: pairs of turns per case, seconds for all of them, and what is too noisy."""

    warm_up: int = 3
    fewest: int = 12
    most: int = 60
    seconds: float = 240.0
    widest: float = 0.05  # of the interval, relative
    shortest: float = 10e-6  # seconds: below it nothing but the launch is measured
    unseen: float = 200e-6  # seconds of work after the last event that are believed to be chance


@dataclass(frozen=True)
class Contest:
    """One case to be timed. `draw(number)` makes the arrays of one turn of one side, by its number;
    `wrong(drawn, after)` says in words what is wrong with what that side left behind, and `least` is the time
    in seconds that nothing can beat."""

    case: str
    submission: Side
    reference: Side
    draw: Callable[[int], Any]
    arrays: Callable[[Any], Arrays]
    wrong: Callable[[Any, Arrays], str]
    least: float


@dataclass(frozen=True)
class Timing:
    """How it ended. ``measured`` has a speed; ``wrong`` is the submission's own fault; ``unclear`` is
    nobody's as far as can be told, and a person must look. `why` explains the last two."""

    state: Literal["measured", "wrong", "unclear"]
    why: str = ""
    speed: Interval | None = None
    pairs: int = 0


class _Ended(Exception):
    def __init__(self, state: Literal["wrong", "unclear"], why: str):
        self.timing = Timing(state, why)


def measure(
    contests: Sequence[Contest],
    settings: Settings | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Timing:
    """The speed over all cases, or why there is none."""
    settings = settings or Settings()
    until = clock() + settings.seconds
    samples: dict[str, list[Pair]] = {}
    try:
        for number, contest in enumerate(contests, 1):
            now = clock()
            by = now + (until - now) / (len(contests) - number + 1)
            samples[contest.case] = _pairs(contest, settings, clock, by)
    except _Ended as ended:
        return ended.timing
    found, pairs = speed(samples), min(map(len, samples.values()))
    if found.width > settings.widest:
        return Timing(
            "unclear", texts.NOISY.format(low=found.low, high=found.high, pairs=pairs), found, pairs
        )
    return Timing("measured", "", found, pairs)


def _pairs(contest: Contest, settings: Settings, clock: Callable[[], float], by: float) -> list[Pair]:
    """Seconds of both sides, turn by turn; more while they are noisy, until `by`. Raises _Ended."""
    found: list[tuple[Turn, Turn]] = []
    for number in range(settings.warm_up + settings.most):
        sides = [contest.submission, contest.reference]
        order = (0, 1) if number % 2 else (1, 0)  # each is first as often as the other
        turns = {
            side: _turn(contest, sides[side], contest.draw(2 * number + side), side == 0) for side in order
        }
        if number >= settings.warm_up:
            found.append((turns[0], turns[1]))
        if len(found) >= settings.fewest:
            enough = speed({contest.case: _seconds(found)}).width <= settings.widest / 2
            if enough or clock() >= by:
                break
        elif clock() >= by:
            raise _Ended("unclear", texts.TOO_FEW_TURNS.format(pairs=len(found), case=contest.case))
    _plausible(contest, found, settings)
    return _seconds(found)


def _seconds(turns: list[tuple[Turn, Turn]]) -> list[Pair]:
    return [(ours.seconds, reference.seconds) for ours, reference in turns]


def _turn(contest: Contest, side: Side, drawn: Any, is_submission: bool) -> Turn:
    """One checked run. Raises _Ended: what is wrong with the reference is no learner's fault."""
    try:
        turn = side.run(contest.arrays(drawn))
        why = contest.wrong(drawn, turn.arrays)
    except Lost as lost:
        raise _Ended("unclear", texts.LOST.format(case=contest.case, why=lost)) from None
    except Trouble as trouble:
        why = str(trouble)
    if not why and turn.seconds <= 0:
        raise _Ended("unclear", texts.TOO_SHORT.format(case=contest.case, seconds=1e6 * turn.seconds))
    if not why:
        return Turn(turn.seconds, turn.flush, turn.waited, [])  # arrays of all turns would fill the memory
    if is_submission:
        raise _Ended("wrong", texts.WRONG_ON_GPU.format(case=contest.case, why=why))
    raise _Ended("unclear", texts.REFERENCE_WRONG.format(case=contest.case, why=why))


def _plausible(contest: Contest, found: list[tuple[Turn, Turn]], settings: Settings) -> None:
    """Raises _Ended for times that cannot be."""
    ours, reference = (median(turn.seconds for turn in side) for side in zip(*found, strict=True))
    for who, seconds in ((texts.SUBMISSION, ours), (texts.REFERENCE, reference)):
        if seconds < contest.least:
            words = {"who": who, "case": contest.case, "seconds": 1e6 * seconds}
            raise _Ended("unclear", texts.IMPOSSIBLE.format(least=1e6 * contest.least, **words))
        if seconds < settings.shortest:
            raise _Ended("unclear", texts.TOO_SHORT.format(case=contest.case, seconds=1e6 * seconds))
    hidden, usual = (median(turn.unseen for turn in side) for side in zip(*found, strict=True))
    if hidden - usual > max(settings.unseen, 0.2 * ours):
        raise _Ended("unclear", texts.WORK_UNSEEN.format(case=contest.case, seconds=1e6 * (hidden - usual)))
