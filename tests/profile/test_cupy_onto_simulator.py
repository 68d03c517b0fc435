"""Kernels of CuPy itself, as a learner has them on a machine with a GPU, run on the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpulab.analysis.profile.cupy_onto_simulator import NoText
from gpulab.analysis.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.checks.evidence import LaunchTrace
from gpulab.frontends import cupy as simulated_cupy

cupy = pytest.importorskip("cupy", reason="CuPy itself is not installed")

TEXT = r"""
extern "C" __global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * x[i];
}
"""
twice = cupy.RawKernel(TEXT, "twice", ("-DFACTOR=2",))
module = cupy.RawModule(
    code="template <typename T> __global__ void halve(T* x) { x[threadIdx.x] /= 2; }",
    name_expressions=["halve<float>"],
)
shifted = cupy.ElementwiseKernel("T x, raw float32 by", "T z", "z = x + by[1]", "shifted")
norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length")


@cupy.fuse(kernel_name="both")
def both(x, y):
    return cupy.maximum(x * y, 0)


def host(x, y):
    twice((1,), (32,), (x, y, cupy.int32(x.size)))
    module.get_function("halve<float>")((1,), (x.size,), (y,))
    shifted(y, cupy.asarray([0, 3], cupy.float32), y)
    return norm(y), both(x, y)


def arrays() -> tuple[Any, Any]:
    return simulated_cupy.arange(5, dtype=np.float32), simulated_cupy.empty(5, np.float32)


def test_a_raw_kernel_keeps_its_text_its_name_and_its_options() -> None:
    x, y = arrays()
    onto_simulator(twice)((1,), (32,), (x, y, np.int32(5)))
    assert y.get().tolist() == [0, 2, 4, 6, 8]


def test_host_code_runs_with_all_of_cupys_kernels_and_keeps_its_own() -> None:
    x, y = arrays()
    length, product = onto_simulator(host)(x, y)
    assert y.get().tolist() == [3, 4, 5, 6, 7]
    assert float(length.get()) == pytest.approx(np.sqrt(135))
    assert product.get().tolist() == [0, 4, 10, 18, 28]
    assert host.__globals__["cupy"] is cupy


def test_a_kernel_taken_out_of_a_module_says_where_to_take_it() -> None:
    class RawKernel:
        code, name = None, "halve<float>"

    RawKernel.__module__ = "cupy._core.raw"  # CuPy makes one on a GPU only
    with pytest.raises(NoText, match="inside the function that launches it"):
        onto_simulator(RawKernel())


def test_arrays_inside_the_arguments_of_a_launch_are_copied_over_and_back() -> None:
    class ndarray:
        """What the bridge needs of CuPy's array, without a GPU."""

        __cuda_array_interface__: dict = {}  # noqa: RUF012

        def __init__(self, host: np.ndarray):
            self.host = host

        def get(self) -> np.ndarray:
            return self.host

        def set(self, host: np.ndarray) -> None:
            self.host = host

    ndarray.__module__ = "cupy"
    x, y = ndarray(np.arange(5, dtype=np.float32)), ndarray(np.zeros(5, np.float32))
    with arrays_there(((1,), (32,), (x, y, np.int32(5)))) as there:
        assert there[:2] == ((1,), (32,)) and isinstance(there[2][0], simulated_cupy.ndarray)
        onto_simulator(twice)(*there)
    assert y.host.tolist() == [0, 2, 4, 6, 8]


def test_a_check_takes_cupys_own_kernel_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import gpulab
    from gpulab.checks import Array, Case, Exercise, Scalar, Shape, registry
    from gpulab.simulator import device

    exercise = Exercise(
        name="toy.twice",
        lab="99",
        correct_points=1,
        evidence=LaunchTrace(
            arguments=lambda sizes: (
                Array("x", (20,)),
                Array("y", (20,), role="out"),
                Scalar("n", 20, "int32"),
            ),
            shape=lambda sizes: Shape((1,), (32,)),
            face="cupy",
        ),
        cases=(Case("20", {"n": 20}),),
    )
    registry.add(exercise, lambda inputs, sizes: {"y": 2 * inputs["x"]})
    monkeypatch.setattr(device, "uses_gpu", lambda: True)
    try:
        assert gpulab.check(exercise, twice).passed
    finally:
        registry.remove("toy.twice")
