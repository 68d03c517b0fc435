"""Offload plans are carried out as the model says, and refused with the place and the reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.content.lab_16_sharded_training.references.exercises import best_plan
from gpulab.subjects.distributed.offload import CannotRun, carry_out

ONE = ["fetch 0", "forward 0", "backward 0"]


def test_a_layer_that_is_asked_for_early_comes_while_another_computes():
    late = ["fetch 0", "forward 0", "fetch 1", "forward 1", "backward 1", "backward 0"]
    early = ["fetch 0", "fetch 1", "forward 0", "forward 1", "backward 1", "backward 0"]
    assert carry_out(late, 2, 3, 5, 2).time == 3 + 5 + 3 + 5 + 10 + 10
    assert carry_out(early, 2, 3, 5, 2).time == 3 + 5 + 5 + 10 + 10


def test_the_link_takes_one_layer_after_the_other():
    plan = ["fetch 0", "fetch 1", "forward 0", "forward 1", "backward 1", "backward 0"]
    parts = carry_out(plan, 2, 4, 1, 2).parts
    assert [(p.start, p.stop) for p in parts if p.what == "fetch"] == [(0, 4), (4, 8)]


@pytest.mark.parametrize(
    "plan, room, said",
    [
        (
            ["fetch 0", "fetch 1"],
            1,
            "event 1, 'fetch 1': there is no room, because layer 0 is on the device. Evict",
        ),
        (["fetch 0", "fetch 0"], 2, "event 1, 'fetch 0': layer 0 is on the device or on its way already"),
        (["forward 0"], 2, "event 0, 'forward 0': layer 0 is not on the device. Fetch it first"),
        (["fetch 1", "forward 1"], 2, "event 1, 'forward 1': 'forward 0' comes next"),
        (["fetch 0", "evict 0"], 2, "event 1, 'evict 0': layer 0 is still on its way"),
        (["fetch 0", "forward 0"], 2, "the plan ends before 'forward 1'"),
        (["load 0"], 2, "event 0 is 'load 0'; events are"),
        (["fetch 2"], 2, "event 0 is 'fetch 2'; events are"),
        (["fetch 00"], 2, "write 'fetch 0'"),
        ([7], 2, "event 0 is 7; events are"),
    ],
)
def test_a_plan_that_cannot_run_is_refused_with_its_place(plan, room, said):
    with pytest.raises(CannotRun) as refused:
        carry_out(plan, 2, 1, 1, room)
    assert said in str(refused.value)


def test_more_work_than_there_is_is_refused():
    with pytest.raises(CannotRun, match="all work is done"):
        carry_out([*ONE, "backward 0"], 1, 1, 1, 1)


def every_plan(layers, room, most):
    """All plans of at most so many fetches that evict only for a fetch."""
    uses = [f"forward {i}" for i in range(layers)] + [f"backward {i}" for i in reversed(range(layers))]

    def after(plan, done, here, left):
        if done == len(uses):
            yield plan
            return
        if int(uses[done].split()[1]) in here:
            yield from after([*plan, uses[done]], done + 1, here, left)
        for layer in set(range(layers)) - here if left else ():
            if len(here) < room:
                yield from after([*plan, f"fetch {layer}"], done, here | {layer}, left - 1)
            for old in here:
                if plan[-1] != f"fetch {old}":
                    new = [*plan, f"evict {old}", f"fetch {layer}"]
                    yield from after(new, done, here - {old} | {layer}, left - 1)

    yield from after([], 0, frozenset(), most)


def runs(plans, *asked):
    for plan in plans:
        try:
            yield carry_out(plan, *asked)
        except CannotRun:  # evicts what is still on its way
            continue


@pytest.mark.parametrize("fetch, compute", [(1, 1), (3, 1), (1, 2), (5, 2)])
@pytest.mark.parametrize("layers, room", [(2, 1), (3, 1), (3, 2), (3, 3), (4, 2)])
def test_no_plan_of_a_small_case_is_better_than_the_reference(layers, room, fetch, compute):
    asked = layers, fetch, compute, room
    mine = carry_out(best_plan(layers, room), *asked)
    least = 2 * layers - min(room, layers)
    assert mine.fetches == least
    found = list(runs(every_plan(layers, room, least + (layers < 4)), *asked))
    assert min(run.time for run in found) == mine.time
    assert min(run.fetches for run in found) == least


@given(st.integers(1, 12), st.integers(1, 9), st.integers(1, 9), st.integers(1, 14))
def test_the_reference_is_never_shorter_than_the_work_that_it_has(layers, fetch, compute, room):
    run = carry_out(best_plan(layers, room), layers, fetch, compute, room)
    assert run.fetches == 2 * layers - min(room, layers)
    assert run.time >= max(fetch + 3 * layers * compute, layers * fetch + 3 * compute)
    alone = 2 * layers * fetch + 3 * layers * compute
    assert run.time <= alone
