"""A reference that is handed in as an answer earns nothing: in the sandbox there is none, nor what does the same."""

from __future__ import annotations

from typing import Any

import pytest

import gpulab
from gpulab.checks import by_hand, registry
from gpulab.checks.spec import Exercise
from gpulab.subjects import numerics
from grading.core import sandbox
from grading.core.judge import exercise_step, job_bytes, live
from grading.core.notebooks import Question
from grading.core.records import read_record
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits

LIMITS = Limits(seconds=200, patience=20)
LIVE = ("communication", "dialogue")
# What gpulab has for an exercise, called instead of written.
FORMAT = "numerics.Format('', e, m, (1 << (e - 1)) - 1)"
CALLS = {
    "arch.warps_needed": "from gpulab.content.lab_02_gpu_architecture import exercises as lab\n"
    "def answer(gpu, lane): return int(-(-lab.bytes_under_way(gpu) // (32 * lane)))",
    "arch.active_blocks": "from gpulab import hardware\n"
    "from gpulab.content.lab_02_gpu_architecture.exercises import sm_limits\n"
    "def answer(sm, *launch):\n"
    "    one = next(c for c in hardware.TABLE.values() if sm_limits(c) == sm)\n"
    "    return hardware.occupancy(one, *launch).active_blocks",
    "memory.sectors": "import numpy as np\nfrom gpulab.simulator.observe.patterns import sectors\n"
    "def answer(addresses, size): return int(sectors(np.array([addresses]), size, None)[0][0])",
    "memory.ways": "import numpy as np\nfrom gpulab.simulator.observe import patterns\n"
    "def answer(addresses, size):\n"
    "    lanes = np.array([[a is not None for a in addresses]])\n"
    "    return int(patterns.wavefronts(np.array([[a or 0 for a in addresses]]), size, lanes)[0][0])",
    "formats.decode": "from gpulab import numerics\n"
    f"def answer(code, e, m): return float(numerics.decode(code, {FORMAT}))",
    "formats.encode": "from gpulab import numerics\n"
    f"def answer(x, e, m): return int(numerics.encode(x, {FORMAT}))",
    "formats.decode8": "from gpulab.numerics import decode as mine\n"
    "def answer(code, variant): return list(map(mine, [code], [variant]))[0].item()",
    "formats.block": "from gpulab import numerics\n"
    "def answer(values):\n"
    "    blocks = numerics.encode_blocks(values, 'MXFP4')\n"
    "    return [int(blocks.scales[0]), blocks.codes[0].tolist()]",
    "cluster.serve": "from gpulab.content.lab_18_clusters_and_reliability.exercises import serve_needs\n"
    "def answer(*asked): return serve_needs(*asked)",
    "cluster.train": "from gpulab.content.lab_18_clusters_and_reliability.exercises import train_needs\n"
    "def answer(*asked): return train_needs(*asked)",
    "edge.plan": "from gpulab.content.lab_21_edge.exercises import choices\n"
    "def answer(*asked): return list(choices(*asked)[0])",
    "edge.energy": "from gpulab.content.lab_21_edge.exercises import ways\n"
    "def answer(modes, period, idle, sleep, battery): return list(ways(modes, period, idle, sleep)[0])",
}


def question(exercise: Exercise) -> Question:
    return Question(exercise.name, exercise.name, "answer", exercise.points)


def steps(exercises: list[Exercise]) -> list[dict[str, Any]]:
    """Cells that hand in the reference of each exercise, each followed by its exercise at one case."""
    found: list[dict[str, Any]] = []
    for exercise in exercises:
        source = f"from gpulab.checks import registry\nanswer = registry.reference({exercise.name!r})"
        found.append({"cell": exercise.name, "source": source})
        found.append(exercise_step(question(exercise), exercise, exercise.cases[:1], [1]))
    return found


def test_no_reference_is_in_the_sandbox(needs_sandbox: None) -> None:
    exercises = [e for e in registry.exercises() if e.evidence.kind not in LIVE]
    assert len(exercises) > 150
    job = job_bytes({"patience": LIMITS.patience, "steps": steps(exercises)})
    outcome = sandbox.record(job, LIMITS)
    trace = read_record(outcome.content)
    assert outcome.end == "done" and trace.done
    assert not any(trace.recorded.values())
    assert set(trace.cell_failures) == {e.name for e in exercises}
    assert all("not installed here" in failure.error for failure in trace.cell_failures.values())

    asked = tuple(map(question, exercises))
    replayed = ReplayJob(
        outcome.content, "", asked, {e.name: e.cases[:1] for e in exercises},
        {(e.name, e.cases[0].name): 1 for e in exercises}, {}, {},
    )  # fmt: skip
    assert {v.exercise: v.points for v in verdicts(replayed)} == {e.name: 0 for e in exercises}


def test_the_same_job_would_answer_where_they_are_installed() -> None:
    plain = [e for e in registry.of_lab("00") if e.evidence.kind == "answered cases"]
    job = job_bytes({"patience": LIMITS.patience, "steps": steps(plain)})
    trace = read_record(sandbox.record(job, LIMITS, unsafe=True).content)
    assert set(trace.recorded["answered cases"]) == {e.name for e in plain} and not trace.cell_failures


@pytest.mark.parametrize("evidence", LIVE)
def test_nor_is_one_where_the_judge_talks_with_the_sandbox(needs_sandbox: None, evidence: str) -> None:
    exercises = [e for e in registry.exercises() if e.evidence.kind == evidence]
    assert len(exercises) > 5
    asked = tuple(map(question, exercises))
    chosen = {e.name: e.cases[:1] for e in exercises}
    seeds = {(e.name, e.cases[0].name): 1 for e in exercises}
    job = steps(exercises)
    found = live(job, asked, chosen, seeds, LIMITS)
    outcome = sandbox.record(job_bytes({"patience": LIMITS.patience, "steps": job}), LIMITS)
    judged = verdicts(ReplayJob(outcome.content, "", asked, chosen, seeds, {}, {}, found))
    assert {v.exercise: v.points for v in judged} == {e.name: 0 for e in exercises}
    assert all("not installed here" in v.reason or "not defined" in v.reason for v in judged)


def test_what_gpulab_has_for_an_exercise_refuses_the_answer(needs_sandbox: None) -> None:
    exercises = [e for e in registry.exercises() if getattr(e.evidence, "by_hand", ())]
    assert {e.name for e in exercises} == set(CALLS)
    steps_asked: list[dict[str, Any]] = []
    for exercise in exercises:
        steps_asked.append({"cell": exercise.name, "source": CALLS[exercise.name]})
        steps_asked.append(exercise_step(question(exercise), exercise, exercise.cases[:1], [1]))
    outcome = sandbox.record(job_bytes({"patience": LIMITS.patience, "steps": steps_asked}), LIMITS)
    trace = read_record(outcome.content)
    assert trace.done and not any(trace.recorded.values()) and not trace.cell_failures
    told = {name: failure.error for name, failure in trace.failures.items()}
    assert set(told) == set(CALLS)
    assert [name for name, error in told.items() if "does what this exercise asks for" not in error] == []


def test_their_functions_are_there_and_work_again_afterwards() -> None:
    for name in {name for e in registry.exercises() for name in getattr(e.evidence, "by_hand", ())}:
        code = by_hand.function(name).__code__
        with by_hand.refused([name]), pytest.raises(by_hand.NotByHand, match=name):
            by_hand.function(name)()
        assert by_hand.function(name).__code__ is code


def test_gpulab_itself_may_use_what_an_answer_may_not() -> None:
    with by_hand.refused(["gpulab.numerics.codecs.exact_codes"]):
        assert numerics.encode(1.0, "FP16") == 0x3C00  # which calls it


def test_the_check_says_the_same_as_the_judge() -> None:
    verdict = gpulab.check("formats.decode8", numerics.decode)
    assert verdict.points == 0 and "does what this exercise asks for" in str(verdict)
