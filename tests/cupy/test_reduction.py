"""ReductionKernel: axes, identities, types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpulab.frontends import cupy as cp

norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
HOST = np.random.default_rng(1).normal(size=(3, 40, 7))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_any_axes(axis: Any, keepdims: bool) -> None:
    expected = np.sqrt((HOST**2).sum(axis=axis, keepdims=keepdims))
    found = norm(cp.asarray(HOST), axis=axis, keepdims=keepdims)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.get(), expected, rtol=1e-13)


@pytest.mark.parametrize("shape", [(1, 1), (1000, 3), (3, 1000), (513, 2), (2, 513), (40, 40)])
def test_long_and_wide_arrays_in_any_layout(shape: tuple[int, int]) -> None:
    host = np.random.default_rng(2).normal(size=shape)
    x = cp.asarray(host)
    for axis in (0, 1):
        expected = np.sqrt((host**2).sum(axis=axis))
        np.testing.assert_allclose(norm(x, axis=axis).get(), expected, rtol=1e-13)
        np.testing.assert_allclose(norm(x.T, axis=1 - axis).get(), expected, rtol=1e-13)


def test_several_inputs_are_broadcast() -> None:
    dot = cp.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "dot")
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    assert np.array_equal(dot(cp.asarray(x), cp.asarray(y), axis=1).get(), x @ y)
    assert float(dot(cp.asarray(x), 2.0)) == 132


def test_the_type_of_the_sum_may_be_another() -> None:
    mean = cp.ReductionKernel(
        "uint8 x", "float32 y", "x", "a + b", "y = (float)a / (_in_ind.size() / _out_ind.size())", "0",
        "mean", reduce_type="unsigned int",
    )  # fmt: skip
    host = np.full((5, 300), 255, np.uint8)
    assert mean(cp.asarray(host), axis=1).get().tolist() == [255] * 5


def test_structures_can_be_reduced() -> None:
    argmax = cp.ReductionKernel(
        "T x", "int64 where", "Best(x, _J)", "better(a, b)", "where = a.place", "Best()", "arg_max",
        reduce_type="Best",
        preamble="""
            struct Best {
                double value; long long place;
                __device__ Best() : value(-1e308), place(0) {}
                __device__ Best(double v, long long p) : value(v), place(p) {}
            };
            __device__ Best better(Best a, Best b) {
                return a.value > b.value || (a.value == b.value && a.place < b.place) ? a : b;
            }
        """,
    )  # fmt: skip
    for axis in (0, 1, 2):
        assert np.array_equal(argmax(cp.asarray(HOST), axis=axis).get(), HOST.argmax(axis=axis))


def test_nothing_to_reduce() -> None:
    empty = cp.empty((0, 3))
    assert norm(empty, axis=0).get().tolist() == [0, 0, 0]
    assert norm(empty, axis=1).shape == (0,)
    largest = cp.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", None, "largest")
    with pytest.raises(
        ValueError, match="zero-size array to reduction operation largest which has no identity"
    ):
        largest(empty, axis=0)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an axis that is not there": (
        lambda: norm(cp.ones((2, 2)), axis=2),
        np.exceptions.AxisError,
        "out of bounds",
    ),
    "an axis twice": (lambda: norm(cp.ones((2, 2)), axis=(0, 0)), ValueError, "repeated axis"),
    "an output of another shape": (
        lambda: norm(cp.ones((2, 3)), axis=0, out=cp.ones(2)),
        ValueError,
        "Out shape is mismatched: l2norm makes (3,), and `y` is (2,).",
    ),
    "two outputs": (
        lambda: norm(cp.ones(3), cp.empty(()), out=cp.empty(())),
        ValueError,
        "cannot specify 'out' as both a positional and keyword argument",
    ),
    "a raw parameter and a later axis": (
        lambda: cp.ReductionKernel("raw T x, T y", "T z", "y", "a + b", "z = a", "0", "f")(
            cp.ones(3), cp.ones((2, 3)), axis=1
        ),
        NotImplementedError,
        "f has a raw parameter: the reduced axes must be the first ones (axis=0, (0, 1), …).",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_gets_its_message(what: str) -> None:
    do, kind, message = MISTAKES[what]
    with pytest.raises(kind) as caught:
        do()
    assert message in str(caught.value)
