"""gpulab.sanitize says nothing of a solution of any lab, nor of the kernels of the validation."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gpulab import cupy as cp
from gpulab.analysis.sanitizer import sanitize
from gpulab.checks import cases, registry
from gpulab.checks.launching import given as as_arguments
from gpulab.checks.launching import launch, scalar
from gpulab.checks.run import reference_device
from gpulab.frontends.cuda.transfers import to_device
from gpulab.simulator import hardware
from tests.labs import notebooks
from tests.tiers import first_of_each
from validation.case import Variant
from validation.compiled import compiling_for
from validation.table import variants

LABS = sorted(path.name for path in (notebooks.ROOT / "solutions").iterdir() if re.match(r"\d\d_", path.name))


def launching(lab: str) -> list:
    """The exercises of a lab whose answers launch kernels."""
    return [e for e in registry.of_lab(lab) if e.evidence.launches]


EXERCISES = [(lab, exercise) for lab in LABS for exercise in launching(lab)]


@pytest.mark.parametrize(
    ("lab", "exercise"),
    list(first_of_each(EXERCISES, kind=lambda pair: pair[0], name=lambda pair: pair[1].name)),
)
def test_nothing_is_said_of_a_solution(lab, exercise):
    name, _ = notebooks.checks(lab)[exercise.name]
    fn, case = notebooks.answers(lab)[name], notebooks.by_size(exercise)[0]
    given = [
        scalar(a.value, exercise.evidence.face)
        if a.role == "scalar"
        else as_arguments(to_device(a.value), exercise.evidence.face)
        for a in cases.arguments(exercise, case)
    ]

    def run(*arguments):
        if exercise.evidence.shape is None:
            fn(*arguments)
        else:
            shape = exercise.evidence.shape(case.sizes)
            launch(fn, shape.grid, shape.block, shape.shared_bytes, list(arguments))

    with reference_device(exercise.gpu):
        findings = [f for f in sanitize(run, *given) if not is_rounding(exercise, f)]
    assert not findings, "\n".join(map(str, findings))


@pytest.mark.parametrize(
    "variant",
    list(first_of_each(variants(), kind=lambda v: (v.kernel.entry, v.language), name=lambda v: v.key)),
)
def test_nothing_is_said_of_a_kernel_of_the_validation(variant: Variant):
    with compiling_for(hardware.find("H200")):
        launch, given = variant.prepared(variant.kernel.case(variant.kernel.sizes[0]))
        findings = sanitize(launch, *given)
    assert not findings, f"\n{findings}"


def is_rounding(exercise, finding) -> bool:
    """Where an exercise allows for rounding, sums of floats by atomics may differ in the last digits."""
    return finding.kind == "order" and bool(exercise.rtol) and "rounds differently" in str(finding)


GRID_BARRIER = """
    #include <cooperative_groups.h>
    extern "C" __global__ void turn(float* x, float* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        x[i] = 2 * x[i];
        SYNC
        y[i] = x[n - 1 - i];
    }"""


@pytest.mark.parametrize(
    ("barrier", "kinds"),
    [("cooperative_groups::this_grid().sync();", set()), ("__syncthreads();", {"race"})],
    ids=["of the grid", "of the block"],
)
def test_nothing_is_said_of_what_a_barrier_of_the_whole_grid_puts_in_order(barrier, kinds):
    text = GRID_BARRIER.replace("SYNC", barrier)
    kernel = cp.RawKernel(text, "turn", enable_cooperative_groups=bool(not kinds))
    x, y = cp.ones(128, np.float32), cp.zeros(128, np.float32)
    findings = sanitize(kernel, (2,), (64,), (x, y, np.int32(128)))
    assert {f.kind for f in findings} - {"order"} == kinds, f"\n{findings}"


def test_there_are_solutions_to_look_at():
    assert len(EXERCISES) > 10
