"""What the tools for memory say of bulk copies, from the PTX of `tests/simt/test_bulk_copies.py`."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.simulator import simt
from gpulab.simulator.observe import Races
from gpulab.simulator.observe.early_touches import EarlyTouches
from gpulab.simulator.observe.proxies import Proxies
from gpulab.simulator.observe.uninitialised import Uninitialised

from ..simt.launching import SCHEDULES, launch
from ..simt.test_bulk_copies import COMMIT, IN, LOAD, PUT, STORE, WAIT, by_first, program

schedules = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
DONE = COMMIT + "cp.async.bulk.wait_group.read 0;"
FILL = "st.shared.b32 [%rd4], %tid;"
FENCE = "fence.proxy.async.shared::cta;"


def told(text: str, tool, schedule: simt.Schedule = simt.LOCKSTEP) -> list[str]:
    arrays = {"in": IN, "out": np.full(512, -7, np.int32)}
    launch(text, arrays, grid=2, block=256, schedule=schedule, observers=[tool])
    return [str(found) for found in tool.findings]


@schedules
@pytest.mark.parametrize("fill, found", [(FILL, 0), ("", 1)], ids=["filled", "not filled"])
def test_a_store_of_what_nobody_has_written_is_told(schedule, fill, found) -> None:
    text = program("", fill + "bar.sync 0;" + by_first(FENCE + STORE + DONE, "DONE"), expects=0)
    assert len(told(text, Uninitialised(), schedule)) == found


@schedules
def test_what_a_copy_has_brought_is_written(schedule) -> None:
    assert told(program(LOAD, WAIT + PUT), Uninitialised(), schedule) == []


@schedules
@pytest.mark.parametrize(
    "before, after, found",
    [
        (FENCE, "", 0),
        ("", FENCE, 0),
        ("", "", 1),
        ("fence.acq_rel.cta;", "", 1),
    ],
    ids=["writers", "sender", "nobody", "another fence"],
)
def test_a_store_sees_what_was_fenced(schedule, before, after, found) -> None:
    text = program("", FILL + before + "bar.sync 0;" + by_first(after + STORE + DONE, "DONE"), expects=0)
    assert len(told(text, Proxies(), schedule)) == found


@schedules
@pytest.mark.parametrize(
    "wait, found",
    [(WAIT, 0), (by_first(WAIT, "MET"), 0), ("bar.sync 0;", 1), ("", 1)],
    ids=["all", "one and a barrier", "a barrier", "nobody"],
)
def test_a_copy_comes_before_those_who_know_that_it_is_there(schedule, wait, found) -> None:
    assert len(told(program(LOAD, wait + PUT), Races(), schedule)) == found


@schedules
@pytest.mark.parametrize("between, found", [("bar.sync 0;", False), ("", True)], ids=["barrier", "nothing"])
def test_a_copy_comes_after_those_who_read_its_place(schedule, between, found) -> None:
    read = "ld.shared.b32 %r2, [%rd4];"
    again = "mbarrier.arrive.expect_tx.shared.b64 _, [%rd0], 1024;" + LOAD
    text = program(LOAD, WAIT + read + between + by_first(again, "AGAIN"))
    assert bool(told(text, Races(), schedule)) == found


def test_a_phase_that_ends_without_its_copy_is_told() -> None:
    half = LOAD.replace("%r1", "512")
    second = half.replace("[%rd1]", "[%rd1+512]").replace("[%rd2]", "[%rd2+512]")
    (found,) = told(program(half + second, WAIT, expects=512), EarlyTouches())
    assert "too few bytes were announced" in found
    assert told(program(half + second, WAIT, expects=1024), EarlyTouches()) == []


@pytest.mark.parametrize("wait, found", [(DONE, 0), (COMMIT, 1), ("", 1)])
def test_a_return_before_the_copy_was_read_is_told(wait, found) -> None:
    text = program("", FILL + FENCE + "bar.sync 0;" + by_first(STORE + wait, "DONE"), expects=0)
    assert len(told(text, EarlyTouches())) == found
