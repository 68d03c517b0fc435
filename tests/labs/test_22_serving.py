"""Lab 22, project C: what its table states, and policies that never ask for what cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab import plot
from gpulab.app import leaderboard
from gpulab.checks import cases, find, registry
from gpulab.content.lab_22_capstones.references.serving import ours
from gpulab.content.lab_22_capstones.serving import OFFLINE, ONLINE, SLO, TIMES, TRACES
from gpulab.subjects import serving
from gpulab.subjects.serving import metrics, traces
from gpulab.subjects.serving.requests import from_data
from tests.labs import notebooks

LAB = "22_capstones"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


def reserving():
    """The policy that the notebook gives to compare with."""
    source = next(c.source for c in notebooks.cells(LAB, "code") if "def reserving(" in c.source)
    names: dict = {}
    exec(source.partition("\n\n\ncrowd")[0], names)
    return names["reserving"]


def test_a_step_of_the_ridge_takes_as_long_as_reading_the_weights():
    asked = registry.predictions()
    ridge = asked["serving_project.tokens"].answer
    compute = TIMES.compute(serving.Work(new=ridge))
    assert compute == pytest.approx(TIMES.weights / TIMES.bandwidth, rel=0.01) and ridge == 153
    assert round(1e3 * TIMES.weights / TIMES.bandwidth, 1) == 7.4
    assert 400 // OFFLINE.blocks_for(96 + 1024) == asked["serving_project.reserved"].answer


@pytest.mark.parametrize("kind", TRACES)
def test_first_come_first_served_keeps_the_limits_for_few_and_ours_for_many(kind):
    trace, policy = TRACES[kind](5), reserving()
    kept = [metrics.attainment(serving.run(ONLINE, trace, each), SLO) for each in (policy, ours)]
    assert kept[0] < 0.45 * kept[1]


def test_the_bounds_are_beyond_all_requests_of_the_public_traces():
    exercise = find("serving_project.serve")
    for budget in exercise.budgets:
        case = next(c for c in exercise.cases if c.name == budget.case)
        for machine, requests in cases.questions(exercise, case):
            ran = serving.run(serving.Machine.from_data(machine), from_data(requests), ours)
            assert 100 / metrics.attainment(ran, SLO) <= budget.bound_for(case.sizes)


def test_no_schedule_is_through_before_its_longest_output():
    exercise = find("serving_project.batch")
    machine, requests = cases.questions(exercise, exercise.cases[-1])[0]
    ran = serving.run(serving.Machine.from_data(machine), from_data(requests), ours)
    longest = max(request["output"] for request in requests) * TIMES.weights / TIMES.bandwidth
    bound = exercise.budgets[0].bound_for(exercise.cases[-1].sizes)
    assert bound <= 100 * longest / ran.end


@settings(max_examples=20, deadline=None)
@given(
    slots=st.integers(1, 5),
    blocks=st.integers(66, 90),
    seed=st.integers(0, 999),
    offline=st.booleans(),
    which=st.sampled_from(["batch", "serve"]),
)
def test_everybody_is_served_on_any_machine(slots, blocks, seed, offline, which):
    policy = notebooks.answers(LAB)[which]
    small = traces.Lengths(prompt=60, prompt_limit=600, output=30, output_limit=400)
    machine = replace(ONLINE, slots=slots, blocks=blocks, step_tokens=None if which == "batch" else 64)
    trace = traces.poisson(6, 2, seed, small)
    if offline:
        trace = [replace(request, arrival=0.0) for request in trace]
    ran = serving.run(machine, trace, policy.decide)
    assert all(life.ended for life in ran.lives)


def test_a_project_has_forty_points_for_being_right_and_forty_for_its_score():
    for name, exercises in leaderboard.projects().items():
        assert sum(e.correct_points for e in exercises) == 40, name
        assert sum(e.points for e in exercises) == 80, name
    for project in "abc":
        every = [c.metadata.get("nbgrader", {}) for c in notebooks.notebooks(LAB)[f"{LAB}_{project}"].cells]
        assert sum(mark["points"] for mark in every if mark.get("grade")) == 100, project


def test_the_numbers_of_the_detective_are_those_of_its_runs(capsys):
    source = next(c.source for c in notebooks.cells(LAB, "code") if "def gentle(" in c.source)
    names = {"serving": serving, "traces": traces, "metrics": metrics, "replace": replace, "SLO": SLO}
    names |= {"plot": plot, "TIMES": TIMES}
    exec(source, names)
    gentle, small, shown = names["gentle"], names["SMALL"], names["shown"]
    assert "98 % of 469 requests in time, median TTFT 52 ms" in capsys.readouterr().out
    documents = [life for life in shown.lives if life.request.prompt > 3000]
    waits = [metrics.ttft(life) for life in documents]
    assert (len(waits), round(min(waits)), round(max(waits))) == (6, 3, 8)
    longest = max((life.request for life in documents), key=lambda request: request.prompt)
    (alone,) = serving.run(small, [replace(longest, arrival=0.0, number=0)], gentle()).lives
    assert round(metrics.ttft(alone), 1) == 0.9
    step = sorted(step.seconds for step in shown.steps)[len(shown.steps) // 2]
    assert round(1e3 * step, 1) == 8.5 and round(64 / step, -2) == 7500
    come = sum(life.request.prompt + life.request.output for life in shown.lives) / 20
    assert round(come, -2) == 8100
    larger = serving.run(small, names["day"], gentle(128))
    again = [metrics.ttft(life) for life in larger.lives if life.request.prompt > 3000]
    assert (round(min(again), 1), round(max(again), 1)) == (0.6, 2.2)
    for run in (shown, larger):
        assert round(1e3 * metrics.percentile(map(metrics.tpot, run.lives), 99)) == 9
    lengths = (
        (24, traces.Lengths(200, 0.5, 600, 40, 0.6, 200)),
        (0.5, traces.Lengths(6000, 0.2, 8000, 40, 0.5, 200)),
    )
    longer = [r for n, (rate, each) in enumerate(lengths) for r in traces.poisson(rate, 40, 3 + n, each)]
    longer = [replace(r, number=n) for n, r in enumerate(sorted(longer, key=lambda r: r.arrival))]
    assert round(max(map(metrics.ttft, serving.run(small, longer, gentle()).lives))) == 22


def test_the_shares_of_the_reports_are_those_of_the_runs():
    """With the solution's policy, and with the same one that orders by length only."""
    before, after = 'gpulab.predict("serving_project.late", measured', "def with_bursts("
    source = next(c.source for c in notebooks.cells(LAB, "code") if after in c.source).partition(before)[0]
    names = {"serving": serving, "traces": traces, "ONLINE": ONLINE, "reserving": reserving()}
    exec(source, names)
    served = next(c.source for c in notebooks.cells(LAB, "code") if "def serve(" in c.source)

    def runs(source):
        here = {"serving": serving}
        exec(source, here)
        return [serving.run(ONLINE, trace, here["serve"].decide) for trace in names["TRACES"].values()]

    ours_, first = runs(served), list(names["first_come"].values())
    by_length = runs(served.replace("return hopeless, request.left", "return request.left"))
    shares = [
        [round(100 * metrics.attainment(run, SLO)) for run in each] for each in (first, ours_, by_length)
    ]
    assert shares == [[16, 14, 35], [55, 93, 95], [42, 92, 95]]
    assert [len(run.lives) for run in ours_] == [195, 403, 146]
    assert sum(metrics.ttft(life) > 1 for life in ours_[0].lives) == 87
    assert [round(metrics.throughput(each[0]), -1) for each in (first, ours_)] == [1590, 2040]
    long = [[metrics.ttft(r) for r in each[2].lives if r.request.prompt > 5500] for each in (first, ours_)]
    assert [(len(w), round(sum(w) / len(w), 2), round(max(w), 2)) for w in long] == [
        (5, 1.13, 2.36),
        (5, 2.06, 2.99),
    ]
