"""The labs' solutions can be stepped through, and compute then what they always do."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab.checks import cases
from gpulab.checks.launching import given, launch
from gpulab.frontends.cuda.transfers import to_device
from tests.labs import notebooks
from tests.sanitizer.test_no_false_alarm import EXERCISES

CHOSEN = (
    "basics.saxpy",
    "basics.two_paths",
    "basics.block_sum",
    "memory.transpose",
    "memory.unpack",
    "cpp.scale",
)
KNOWN = {exercise.name: (lab, exercise) for lab, exercise in EXERCISES}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_solution_can_be_stepped_through(name):
    lab, exercise = KNOWN[name]
    fn, case = notebooks.answers(lab)[notebooks.checks(lab)[name][0]], notebooks.by_size(exercise)[0]
    results = []

    def run(*arguments):
        if exercise.evidence.shape is None:
            fn(*arguments)
        else:
            shape = exercise.evidence.shape(case.sizes)
            launch(fn, shape.grid, shape.block, shape.shared_bytes, list(arguments))

    for how in (lambda *a: run(*a), lambda *a: gpulab.trace(run, *a, threads=0)):
        known = cases.arguments(exercise, case)
        arrays = {a.name: to_device(a.value) for a in known if a.role != "scalar"}
        made = how(
            *(given(arrays[a.name], exercise.evidence.face) if a.name in arrays else a.value for a in known)
        )
        results.append({name: array.copy_to_host() for name, array in arrays.items()})
    assert made.fault is None
    assert made.steps
    assert made.variables
    for array, value in results[0].items():
        np.testing.assert_allclose(results[1][array], value, rtol=1e-5, err_msg=array)
