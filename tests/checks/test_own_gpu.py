"""An exercise for Hopper is checked, recorded and judged on an H100, whichever GPU the learner has chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpulab import cupy as cp
from gpulab.checks.checking import check
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.evidence.launch_records import read_kernel
from gpulab.checks.spec import Answer, Array, Case, Contents, Exercise, Sizes
from gpulab.frontends.cupy.tensor_maps import driver
from gpulab.simulator import device

# Four tiles of 8 × 32 floats, each brought and taken back by the copy engine of a GPU of 9.0 or newer.
DOUBLE = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };

extern "C" __global__ void twice(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {
    __shared__ alignas(1024) float tile[256];
    __shared__ unsigned long long full;
    int at[2] = {int(blockIdx.x) * 32, int(blockIdx.y) * 8};
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &from, at, &full);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
    for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] *= 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, at, tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}
"""


def described(array: Any) -> Any:
    return driver.cuTensorMapEncodeTiled(
        7, 2, array.data.ptr, list(reversed(array.shape)), [array.strides[0]], [32, 8], [1, 1], 0, 0, 0, 0
    )[1]


def twice(x: Any, y: Any) -> None:
    cp.RawKernel(DOUBLE, "twice")((2, 2), (64,), (described(x), described(y)))


def the_other_way(x: Any, y: Any) -> None:
    cp.RawKernel(DOUBLE, "twice")((2, 2), (64,), (described(y), described(y)))


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
