"""An exercise for Hopper is checked, recorded and judged on an H100, whichever GPU the learner has chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp
from gpulab.checks.checking import check
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.evidence.launch_records import read_kernel
from gpulab.checks.spec import Answer, Array, Case, Contents, Exercise, Sizes
from gpulab.simulator import device
from tests.cupy.test_tensor_maps import DOUBLE


def maps(*arrays: Any) -> tuple[Any, ...]:
    return tuple(gpulab.tensor_map(array, (8, 32), swizzle=128) for array in arrays)


def twice(x: Any, y: Any) -> None:
    cp.RawKernel(DOUBLE, "twice")((2, 2), (64,), maps(x, y))


def the_other_way(x: Any, y: Any) -> None:
    cp.RawKernel(DOUBLE, "twice")((2, 2), (64,), maps(y, y))


def arrays(sizes: Sizes) -> tuple[Array, ...]:
    return Array("x", (16, 64)), Array("y", (16, 64), role="out")


CASE = Case("16 × 64", {})
ON_HOPPER = Exercise("start.twice", "00", 1.0, (CASE,), LaunchTrace(arrays, face="cupy"), gpu="H100")


def reference(inputs: dict[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    return {"y": 2 * inputs["x"]}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpulab.checks.registry.reference", lambda name: reference)


def judged(function: Any, exercise: Exercise) -> str:
    """The state of the first part after the record and the replay, through JSON as between two processes."""
    evidence = exercise.evidence
    lines: list[tuple[str, dict[str, Any]]] = []
    record = SimpleNamespace(kernels=set(), line=lambda kind, **facts: lines.append((kind, facts)))
    step = json.loads(json.dumps(evidence.step(exercise, CASE, 3), default=lambda value: value.tolist()))
    evidence.record(function, record, exercise.name, step)
    written = json.loads(json.dumps(lines))
    kernels = {facts["digest"]: read_kernel(facts) for kind, facts in written if kind == "kernel"}
    case = next(facts for kind, facts in written if kind == "case")
    contents = Contents({CASE.name: 5}, garbage=7)
    there = {CASE.name: evidence.read(case, kernels)}
    return evidence.replay(Answer(exercise, function, reference, contents), there)[0].state


def test_the_check_runs_on_the_exercises_gpu_and_says_so() -> None:
    assert device.current().gpu.name == "A100"
    verdict = check(ON_HOPPER, twice, attempt=False)
    assert verdict.passed and verdict.device == "H100 simulated"
    assert device.current().gpu.name == "A100"


def test_on_another_gpu_the_same_answer_is_told_what_that_gpu_lacks() -> None:
    verdict = check(replace(ON_HOPPER, gpu="A100"), twice, attempt=False)
    assert not verdict.passed and "9.0" in str(verdict)


def test_the_judge_replays_tensor_maps_with_its_own_arrays() -> None:
    assert judged(twice, ON_HOPPER) == "pass"
    assert judged(the_other_way, ON_HOPPER) != "pass"
