"""Streams, engines and events: modelled times against schedules worked out by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.analysis.profile.engines import Operation, makespan, predecessors, schedule


def chunked(chunks: int, streams: int, copy_engines: int = 2) -> list[Operation]:
    """Copy in, kernel, copy out of each chunk in turn; all of them take one unit."""
    engines = ("in", "SMs", "out" if copy_engines == 2 else "in")
    return [Operation(k % streams, engine, 1) for k in range(chunks) for engine in engines]


@pytest.mark.parametrize(
    "chunks, streams, length",
    [(1, 1, 3), (8, 1, 24), (8, 8, 10), (8, 3, 10), (8, 2, 13), (7, 2, 12), (4, 4, 6)],
)
def test_equal_stages_in_a_pipeline_take_what_was_worked_out(
    chunks: int, streams: int, length: float
) -> None:
    assert makespan(chunked(chunks, streams)) == length


def test_one_copy_engine_fed_depth_first_overlaps_nothing() -> None:
    assert makespan(chunked(4, 4, copy_engines=1)) == 12
    order = [
        "in 0",
        "in 1",
        "SMs 0",
        "out 0",
        "in 2",
        "SMs 1",
        "out 1",
        "in 3",
        "SMs 2",
        "out 2",
        "SMs 3",
        "out 3",
    ]
    fed = [Operation(w.split()[1], "SMs" if w[0] == "S" else "copy", 1) for w in order]
    assert makespan(fed) == 8


def test_an_event_orders_what_streams_do_not() -> None:
    free = [Operation("a", "in", 2), Operation("b", "SMs", 1)]
    assert [i.start for i in schedule(free)] == [0, 0]
    assert predecessors(free) == (frozenset(), frozenset())
    waiting = [Operation("a", "in", 2), Operation("b", "SMs", 1, after=(0,)), Operation("b", "out", 1)]
    assert [i.start for i in schedule(waiting)] == [0, 2, 3]
    assert predecessors(waiting)[2] == {0, 1}


def test_an_engine_is_no_promise_of_order() -> None:
    shared = [Operation("a", "SMs", 1), Operation("b", "SMs", 1)]
    assert schedule(shared)[1].start == 1 and predecessors(shared)[1] == frozenset()


@pytest.mark.parametrize("other", [1, 0, -1, 7])
def test_nothing_can_wait_for_what_is_not_issued_yet(other: int) -> None:
    with pytest.raises(ValueError, match=f"operation 0 waits for operation {other}"):
        schedule([Operation("a", "in", 1, after=(other,)), Operation("a", "in", 1)])


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from("xyz"), st.integers(1, 5), st.sets(st.integers(0, 19))),
        max_size=20,
    )
)
def test_a_schedule_keeps_every_promise_and_no_engine_does_two_things(rows: list) -> None:
    operations = [
        Operation(stream, engine, time, tuple(a for a in after if a < place))
        for place, (stream, engine, time, after) in enumerate(rows)
    ]
    when = schedule(operations)
    for place, earlier in enumerate(predecessors(operations)):
        assert all(when[other].stop <= when[place].start for other in earlier)
    for engine in "xyz":
        busy = [i for i, o in zip(when, operations, strict=True) if o.engine == engine]
        assert all(a.stop <= b.start for a, b in itertools.pairwise(busy))
    work = sum(o.duration for o in operations)
    assert makespan(operations) <= work
