"""Kernels of numba itself, as a learner has them on a machine with a GPU, run on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda as numba_cuda

from gpulab.analysis.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.frontends import cuda as simulated_cuda

pytestmark = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPerformanceWarning")


@numba_cuda.jit(device=True)
def more(x):
    return x + 1


@numba_cuda.jit
def add_one(a, out):
    i = numba_cuda.grid(1)
    if i < a.size:
        out[i] = more(a[i])


def launch(a, out):
    add_one[1, 32](a, out)


def twice(a, out):
    launch(a, out)
    scratch = numba_cuda.to_device(out)
    launch(scratch, out)


def vectors() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(20, dtype=np.float32), np.zeros(20, np.float32)


def test_a_kernel_with_its_device_functions_runs_simulated() -> None:
    a, out = vectors()
    onto_simulator(add_one)[1, 32](a, out)
    assert np.array_equal(out, a + 1)


def test_a_kernel_with_its_launch_shape_runs_simulated() -> None:
    a, out = vectors()
    onto_simulator(add_one[1, 32])(a, out)
    assert np.array_equal(out, a + 1)


def test_host_code_runs_with_simulated_kernels_and_keeps_its_own() -> None:
    a, out = vectors()
    onto_simulator(twice)(a, out)
    assert np.array_equal(out, a + 2)
    assert isinstance(launch.__globals__["add_one"], type(add_one))


def test_host_code_may_close_over_a_kernel() -> None:
    def make(kernel: Any) -> Callable[..., None]:
        def run(a, out):
            kernel[1, 32](a, out)

        return run

    a, out = vectors()
    onto_simulator(make(add_one))(a, out)
    assert np.array_equal(out, a + 1)


@pytest.mark.parametrize("thing", [3, print, np.ones, len, simulated_cuda.jit(lambda a: None)])
def test_what_holds_no_kernel_of_numba_is_left_alone(thing: Any) -> None:
    assert onto_simulator(thing) is thing


def test_arrays_of_a_gpu_are_copied_over_and_back() -> None:
    class OnGpu:
        def __init__(self, data: np.ndarray) -> None:
            self.data = data

        def copy_to_host(self) -> np.ndarray:
            return self.data.copy()

        def copy_to_device(self, data: np.ndarray) -> None:
            self.data = data

    a, out = (OnGpu(v) for v in vectors())
    with arrays_there((a, out, 3)) as (there_a, there_out, number):
        assert number == 3
        onto_simulator(add_one)[1, 32](there_a, there_out)
    assert np.array_equal(out.data, a.data + 1)


def test_a_slice_of_a_gpus_array_is_copied_over_and_back_without_its_gaps() -> None:
    class SliceOnGpu:
        """As numba's: copied to the host with its gaps, and assigned to, but never copied into."""

        def __init__(self, whole: np.ndarray) -> None:
            self.whole = whole

        def copy_to_host(self) -> np.ndarray:
            return self.whole.copy()[:, ::2]

        def __setitem__(self, where: slice, data: np.ndarray) -> None:
            self.whole[:, ::2][where] = data

    part = SliceOnGpu(np.zeros((4, 8), np.float32))
    with arrays_there((part,)) as (there,):
        there.copy_to_device(np.ones((4, 4), np.float32))
    assert part.whole.sum() == 16 and part.whole[:, 1::2].sum() == 0
