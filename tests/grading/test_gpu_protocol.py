"""How one answer is timed: what honest ones get, what cheats and noise get, on a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from grading.gpu_stage.protocol import Arrays, Contest, Lost, Settings, Timing, Trouble, Turn, measure

MS = 1e-3
SETTINGS = Settings(warm_up=2, fewest=10, most=30, seconds=60.0)
LEAST = 0.5 * MS


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Fake:
    """A side that adds 1 to what it is given. `seconds(turn)` is its time, `work` what it does."""

    clock: Clock
    seconds: Callable[[int], float] = lambda turn: MS
    work: Callable[[int, np.ndarray], np.ndarray] = lambda turn, given: given + 1
    after: float = 0.0  # seconds that the device goes on when all was timed
    sleeps: Callable[[int], float] = lambda turn: 0.0  # on the host's clock
    got: list[np.ndarray] = field(default_factory=list)

    def run(self, arrays: Arrays) -> Turn:
        turn = len(self.got)
        self.got.append(arrays[0].copy())
        left = self.work(turn, arrays[0])
        seconds = self.seconds(turn)
        self.clock.now += seconds + self.after + self.sleeps(turn)
        return Turn(seconds, MS, seconds + MS + self.after, [left])


def timed(
    submission: Callable[[Clock], Fake],
    reference: Callable[[Clock], Fake] = Fake,
    settings: Settings = SETTINGS,
) -> tuple[Timing, Fake, Fake]:
    """One contest on contents that differ from turn to turn."""
    clock = Clock()
    ours, theirs = submission(clock), reference(clock)

    def wrong(drawn: np.ndarray, after: Arrays) -> str:
        return "" if np.array_equal(after[0], drawn + 1) else "not one more"

    contest = Contest(
        "n", ours, theirs, lambda turn: np.arange(4) + 10 * turn, lambda drawn: [drawn], wrong, LEAST
    )
    return measure([contest], settings, clock), ours, theirs


@pytest.mark.parametrize(("seconds", "speed"), [(MS, 1.0), (2 * MS, 0.5), (0.8 * MS, 1.25)])
def test_an_honest_answer_gets_its_speed(seconds: float, speed: float) -> None:
    found, _, _ = timed(lambda clock: Fake(clock, lambda turn: seconds))
    assert found.state == "measured" and found.speed is not None
    assert found.speed.middle == pytest.approx(speed)
    assert found.pairs == SETTINGS.fewest


def test_each_side_gets_contents_of_its_own_and_new_ones_in_every_turn() -> None:
    _, ours, theirs = timed(Fake)
    turns = SETTINGS.warm_up + SETTINGS.fewest
    assert len(ours.got) == len(theirs.got) == turns
    assert len({a.tobytes() for a in ours.got + theirs.got}) == 2 * turns


def test_sides_take_turns_in_being_first() -> None:
    order: list[str] = []

    def named(name: str) -> Callable[[Clock], Fake]:
        def work(turn: int, given: np.ndarray) -> np.ndarray:
            order.append(name)
            return given + 1

        return lambda clock: Fake(clock, work=work)

    timed(named("ours"), named("theirs"))
    firsts = order[::2]
    assert abs(firsts.count("ours") - firsts.count("theirs")) <= 1
    assert sorted(order[:2]) == ["ours", "theirs"]


def test_what_slows_both_down_for_a_while_changes_nothing() -> None:
    def hot(turn: int) -> float:
        return MS * (1 + 0.04 * turn)

    found, _, _ = timed(lambda clock: Fake(clock, hot), lambda clock: Fake(clock, hot))
    assert found.state == "measured" and found.speed is not None
    assert found.speed.low > 0.95


def test_noise_is_no_verdict_and_says_so() -> None:
    noise = np.random.default_rng(3)
    found, _, _ = timed(lambda clock: Fake(clock, lambda turn: MS * float(noise.uniform(0.6, 3))))
    assert found.state == "unclear"
    assert "vary too much" in found.why and f"after {SETTINGS.most} turns" in found.why


def test_a_little_noise_is_met_with_more_turns() -> None:
    noise = np.random.default_rng(3)
    found, _, _ = timed(lambda clock: Fake(clock, lambda turn: MS * float(noise.uniform(0.97, 1.03))))
    assert found.state == "measured" and found.pairs > SETTINGS.fewest


def test_an_output_that_is_written_once_is_found_in_the_second_turn() -> None:
    first: list[np.ndarray] = []

    def once(turn: int, given: np.ndarray) -> np.ndarray:
        first[:] = first or [given + 1]
        return first[0]

    found, ours, _ = timed(lambda clock: Fake(clock, work=once))
    assert found.state == "wrong" and "not one more" in found.why
    assert len(ours.got) == 2


def test_work_that_is_left_out_only_while_it_counts_is_found() -> None:
    def lazy(turn: int, given: np.ndarray) -> np.ndarray:
        return given + 1 if turn < SETTINGS.warm_up else given

    assert timed(lambda clock: Fake(clock, work=lazy))[0].state == "wrong"


def test_a_time_that_no_memory_allows_is_refused() -> None:
    found, _, _ = timed(lambda clock: Fake(clock, lambda turn: 0.4 * MS))
    assert found.state == "unclear" and "allows no less than 500.0 µs" in found.why
    backwards, _, _ = timed(lambda clock: Fake(clock, lambda turn: -MS))
    assert backwards.state == "unclear" and "-1000.0 µs" in backwards.why


def test_work_after_the_last_event_is_heard_by_the_hosts_clock() -> None:
    found, _, _ = timed(lambda clock: Fake(clock, lambda turn: 0.6 * MS, after=5 * MS))
    assert found.state == "unclear" and "went on for 5000 µs" in found.why


def test_who_sleeps_until_the_time_is_up_has_too_few_turns() -> None:
    found, _, _ = timed(lambda clock: Fake(clock, sleeps=lambda turn: 30.0))
    assert found.state == "unclear" and "turns at n in the time" in found.why


def test_what_is_too_short_to_be_measured_is_not() -> None:
    tiny = Settings(warm_up=2, fewest=10, most=30, seconds=60.0, shortest=2 * MS)
    found, _, _ = timed(Fake, settings=tiny)
    assert found.state == "unclear" and "too short" in found.why


def raising(error: Exception) -> Callable[[int, np.ndarray], np.ndarray]:
    def work(turn: int, given: np.ndarray) -> np.ndarray:
        raise error

    return work


def test_a_fault_costs_its_own_side_and_a_lost_process_nobody() -> None:
    fault = raising(Trouble("CUDA_ERROR_ILLEGAL_ADDRESS"))
    assert timed(lambda clock: Fake(clock, work=fault))[0] == Timing(
        "wrong", "at n, on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS"
    )
    gone = raising(Lost("ended"))
    assert timed(lambda clock: Fake(clock, work=gone))[0].state == "unclear"
    found = timed(Fake, lambda clock: Fake(clock, work=fault))[0]
    assert found.state == "unclear" and "reference" in found.why
