"""mbarriers against a scalar model, with their faults, their copies, and what the race check makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import simt
from gpulab.simulator.observe import Races
from gpulab.simulator.simt import mbarrier_words
from gpulab.simulator.simt.errors import Endless, WrongBarrier

from .launching import SCHEDULES, element, kernel, launch

schedules = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)

SHARED = ".shared .align 8 .b64 bar;\n.shared .align 16 .b8 tile[1024];"
OUT = np.full(64, -7, np.int32)


def by_first(what: str) -> str:
    """The first thread does `what`, then the block meets."""
    return f"""
    mov.u64 %rd0, bar;
    mov.u64 %rd1, tile;
    setp.ne.s32 %p0, %tid, 0;
    @%p0 bra MEET;
    {what}
    MEET:
    bar.sync 0;
    """


def with_barrier(count: int, body: str) -> str:
    return kernel(by_first(f"mbarrier.init.shared.b64 [%rd0], {count};") + body, declarations=SHARED)


def store(register: str) -> str:
    return f"{element('out')}\nst.global.b32 [%rd31], {register};"


WAIT_STATE = "WAIT: mbarrier.test_wait.shared.b64 %p1, [%rd0], %rd2; @!%p1 bra WAIT;"
WAIT_PARITY = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%rd0], 0; @!%p1 bra WAIT;"
WAIT_TIME = "WAIT: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%rd0], 0, 1000; @!%p1 bra WAIT;"
ARRIVE = "mbarrier.arrive.shared.b64 %rd2, [%rd0];"
WRITE = "mad.wide.s32 %rd3, %tid, 4, %rd1; st.shared.b32 [%rd3], %tid;"
READ = "sub.s32 %r0, 63, %tid; mad.wide.s32 %rd4, %r0, 4, %rd1; ld.shared.b32 %r1, [%rd4];"


# ---- waiting and arriving ----------------------------------------------------------------------------------


@schedules
@pytest.mark.parametrize(
    "wait", [WAIT_STATE, WAIT_PARITY, WAIT_TIME], ids=["by state", "by parity", "for a time"]
)
def test_who_waits_goes_on_when_all_have_arrived(schedule, wait) -> None:
    text = with_barrier(64, WRITE + ARRIVE + wait + READ + store("%r1"))
    found = launch(text, {"out": OUT}, block=64, schedule=schedule)
    assert np.array_equal(found["out"], np.arange(64)[::-1])


@schedules
def test_one_warp_writes_and_another_waits_and_reads(schedule) -> None:
    """The consumers come first in one of the schedules, and wait."""
    body = f"""
    setp.ge.s32 %p2, %tid, 32;
    @%p2 bra CONSUME;
    {WRITE}
    mbarrier.arrive.shared.b64 _, [%rd0];
    bra DONE;
    CONSUME:
    {WAIT_PARITY}
    {READ}
    {store("%r1")}
    DONE:
    """
    found = launch(with_barrier(32, body), {"out": OUT}, block=64, schedule=schedule)
    assert np.array_equal(found["out"][32:], np.arange(32)[::-1])
    assert (found["out"][:32] == -7).all()


def test_a_barrier_serves_phase_after_phase() -> None:
    body = f"""
    mov.u32 %r4, 0;
    AGAIN:
    {ARRIVE}
    {WAIT_STATE}
    add.s32 %r4, %r4, 1;
    setp.lt.s32 %p3, %r4, 5;
    @%p3 bra AGAIN;
    {store("%r4")}
    """
    assert (launch(with_barrier(64, body), {"out": OUT}, block=64)["out"] == 5).all()


def test_the_state_tells_how_many_arrivals_were_lacking() -> None:
    body = ARRIVE + "mbarrier.pending_count.b64 %r0, %rd2;" + store("%r0")
    found = launch(with_barrier(64, body), {"out": OUT}, block=64)["out"]
    assert np.array_equal(found, np.arange(64, 0, -1))


# ---- against a scalar model --------------------------------------------------------------------------------


class Model:
    """One mbarrier, as the PTX manual tells it: counts, and a phase that ends when nothing is lacking."""

    def __init__(self, count: int):
        self.expected = self.pending = count
        self.bytes = self.phase = 0

    def step(self, arrivals: int, drop: int, more_bytes: int) -> int:
        phase = self.phase
        self.expected -= drop
        self.pending -= arrivals
        self.bytes += more_bytes
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending = self.phase + 1, self.expected
        return phase


STEPS = {
    "mbarrier.arrive.shared.b64 %rd2, [%rd0], {};": lambda n: (n, 0, 0),
    "mbarrier.arrive_drop.shared.b64 %rd2, [%rd0], {};": lambda n: (n, n, 0),
    "mbarrier.arrive.expect_tx.shared.b64 %rd2, [%rd0], {};": lambda n: (1, 0, n),
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%rd0], {};": lambda n: (0, 0, n),
    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%rd0], {};": lambda n: (0, 0, -n),
}


@given(
    st.integers(6, 12), st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 3)), max_size=12)
)
def test_any_sequence_of_operations_ends_phases_as_the_manual_says(count, steps) -> None:
    model, text, chosen = Model(count), "", []
    for operation, n in steps:
        arrivals, drop, more = STEPS[operation](n)
        if model.pending < arrivals or model.expected - drop < 1:
            continue  # the manual leaves it undefined
        model.step(arrivals, drop, more)
        chosen.append(operation)
        text += operation.format(n) + "\n"
    text += "mbarrier.test_wait.parity.shared.b64 %p1, [%rd0], 0; selp.b32 %r0, 1, 0, %p1;" + store("%r0")
    text = text.replace(store("%r0"), store("%r0").replace("%at", "0"))
    found = launch(with_barrier(count, text), {"out": OUT}, block=1)["out"][0]
    assert found == model.phase % 2


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(-4, 4)), min_size=1, max_size=20),
    st.integers(1, 40),
)
def test_many_arrivals_at_once_are_as_many_one_by_one(steps, count) -> None:
    arrivals, drops, more = (np.array(x, np.int64) for x in zip(*steps, strict=True))
    start = mbarrier_words.first_word(np.array([count]))
    words = [start]
    for i in range(len(steps)):
        words.append(mbarrier_words.after(words[-1], *(x[i : i + 1] for x in (arrivals, drops, more))))
    assert np.array_equal(mbarrier_words.in_turn(start, arrivals, drops, more), np.concatenate(words))


# ---- copies ------------------------------------------------------------------------------------------------

COPY = """
mad.wide.s32 %rd5, %tid, 16, %in;
mad.wide.s32 %rd3, %tid, 16, %rd1;
cp.async.cg.shared.global [%rd3], [%rd5], 16;
"""


@schedules
@pytest.mark.parametrize("more, count", [("", 64), (".noinc", 128)])
def test_copies_are_there_when_the_phase_that_they_arrive_in_is_over(schedule, more, count) -> None:
    read = "sub.s32 %r0, 63, %tid; mad.wide.s32 %rd4, %r0, 16, %rd1; ld.shared.b32 %r1, [%rd4];"
    body = (
        COPY
        + f"cp.async.mbarrier.arrive{more}.shared.b64 [%rd0];"
        + ARRIVE
        + WAIT_STATE
        + read
        + store("%r1")
    )
    text = kernel(
        by_first(f"mbarrier.init.shared.b64 [%rd0], {count};") + body, "in out", declarations=SHARED
    )
    given = np.arange(256, dtype=np.int32)
    found = launch(text, {"in": given, "out": OUT}, block=64, schedule=schedule)["out"]
    assert np.array_equal(found, given[::4][::-1])


def test_copies_are_not_there_before() -> None:
    body = (
        COPY + "cp.async.mbarrier.arrive.noinc.shared.b64 [%rd0]; ld.shared.b32 %r1, [%rd3];" + store("%r1")
    )
    text = kernel(by_first("mbarrier.init.shared.b64 [%rd0], 64;") + body, "in out", declarations=SHARED)
    found = launch(text, {"in": np.arange(256, dtype=np.int32), "out": OUT}, block=64)["out"]
    assert (found == -1).all()


# ---- faults ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, words",
    [
        (kernel("mov.u64 %rd0, bar;" + ARRIVE, declarations=SHARED), "not initialised"),
        (with_barrier(1 << 20, ""), "number of arrivals that cannot be.\nAn mbarrier takes 1 to 1048575"),
        (with_barrier(0, ARRIVE), "not initialised, or for no arrivals"),
        (with_barrier(2, "mbarrier.arrive.shared.b64 %rd2, [%rd0], 3;"), "once more than its phase expects"),
        (with_barrier(1, "mbarrier.inval.shared.b64 [%rd0];" + ARRIVE), "not initialised"),
    ],
    ids=["no init", "too many to come", "no arrivals", "too many", "destroyed"],
)
def test_wrong_use_is_told(text, words) -> None:
    with pytest.raises(WrongBarrier) as caught:
        launch(text, {"out": OUT}, block=1)
    assert words in str(caught.value)


def test_an_mbarrier_for_no_arrivals_that_nobody_uses_does_no_harm() -> None:
    found = launch(with_barrier(0, store("%tid")), {"out": OUT}, block=64)["out"]
    assert (found == np.arange(64)).all()


@schedules
def test_a_wait_for_arrivals_that_do_not_come_is_no_endless_run(schedule) -> None:
    with pytest.raises(
        Endless, match=r"waits at the mbarrier bar .* of parity 0, which lacks 1 of 65 arrivals"
    ):
        launch(with_barrier(65, ARRIVE + WAIT_STATE), {"out": OUT}, block=64, schedule=schedule)


@schedules
def test_a_wait_that_watches_the_clock_is_no_endless_run_either(schedule) -> None:
    timed = "WAIT: mov.u64 %rd8, %clock64; mbarrier.test_wait.shared.b64 %p1, [%rd0], %rd2; @!%p1 bra WAIT;"
    timed += element("out") + "st.global.b32 [%rd31], %rd8;"
    with pytest.raises(
        Endless, match=r"waits at the mbarrier bar .* of parity 0, which lacks 1 of 65 arrivals"
    ):
        launch(with_barrier(65, ARRIVE + timed), {"out": OUT}, block=64, schedule=schedule)


# ---- races -------------------------------------------------------------------------------------------------


def races(body: str, count: int, schedule: simt.Schedule) -> int:
    watcher = Races()
    launch(with_barrier(count, body), {"out": OUT}, block=64, schedule=schedule, observers=[watcher])
    return len(watcher.findings)


def consumers(wait: str) -> str:
    """The first warp writes and arrives; the second one reads."""
    return f"""
    setp.ge.s32 %p2, %tid, 32;
    @%p2 bra CONSUME;
    {WRITE}
    mbarrier.arrive.shared.b64 _, [%rd0];
    bra DONE;
    CONSUME:
    {wait}
    {READ}
    DONE:
    """


FIRST_LANE_WAITS = f"""
setp.ne.s32 %p4, %tid, 32;
@%p4 bra JOIN;
{WAIT_PARITY}
JOIN:
"""


@schedules
@pytest.mark.parametrize(
    "wait, found",
    [
        (WAIT_PARITY, 0),
        ("", 1),
        (FIRST_LANE_WAITS + "bar.warp.sync -1;", 0),
        (FIRST_LANE_WAITS, 1),
    ],
    ids=["all wait", "nobody waits", "one waits for its warp", "one waits for itself"],
)
def test_an_arrival_comes_before_what_those_do_who_waited_for_it(schedule, wait, found) -> None:
    assert races(consumers(wait), 32, schedule) == found


@schedules
def test_what_a_thread_writes_after_its_arrival_is_not_waited_for(schedule) -> None:
    late = ARRIVE + WRITE + WAIT_STATE + READ
    assert races(late, 64, schedule) == 1
    assert races(WRITE + ARRIVE + WAIT_STATE + READ, 64, schedule) == 0


def test_use_without_a_barrier_behind_the_initialisation_is_a_race() -> None:
    text = with_barrier(64, ARRIVE).replace("bar.sync 0;", "")
    watcher = Races()
    launch(text, {"out": OUT}, block=64, observers=[watcher])
    assert watcher.findings
