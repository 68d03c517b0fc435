"""fuse: one kernel for a function of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab.frontends import cupy as cp

RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(4, 5)), RNG.normal(size=5)

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, y: (x - y) * (x + 2) / (y * y + 1) - -x,
    "functions": lambda x, y: cp.exp(-abs(x)) + cp.sqrt(cp.abs(y)) * cp.sin(x) + np.log1p(y * y),
    "choices": lambda x, y: cp.where(x > y, x, 0) + cp.maximum(x, y) + cp.clip(x, -0.5, 0.5),
    "comparisons": lambda x, y: (x < y) & (y >= 0) | ~(x == y),
    "powers": lambda x, y: x**2 + 2.0**y + abs(x) ** 0.5,
    "rounding": lambda x, y: cp.floor(x * 3) // 2 + cp.rint(y) % 2 + cp.sign(x),
    "dtypes": lambda x, y: x.astype(cp.float32) * 2 + (y > 0).astype(cp.int8),
    "several results": lambda x, y: (x + y, x * y, x > y),
    "smaller results": lambda x, y: (x + y, y * 2),
    "an argument back": lambda x, y: (x, y + 1),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_fused_function_gives_what_the_function_gives(name: str, dtype: str) -> None:
    function = ELEMENTWISE[name]
    x, y = cp.asarray(X, dtype=dtype), cp.asarray(Y, dtype=dtype)
    expected, found = function(x, y), cp.fuse(kernel_name="fused")(function)(x, y)
    single = not isinstance(expected, tuple)
    for a, b in zip([expected] if single else expected, [found] if single else found, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(b.get(), a.get(), rtol=2e-6 if dtype == "float32" else 1e-14)


def test_integers_round_and_divide_as_numpys() -> None:
    def function(a: Any) -> Any:
        return a // 3, a % 3, a**2, abs(a), a << 1, a & 5, cp.sign(a), a / 2

    x = cp.arange(-7, 8, dtype=cp.int32)
    for expected, found in zip(function(x), cp.fuse()(function)(x), strict=True):
        assert expected.dtype == found.dtype
        assert np.array_equal(expected.get(), found.get())


def test_it_is_one_launch_that_reads_and_writes_once() -> None:
    @cp.fuse()
    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + cp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    x = cp.ones(1024, cp.float32)
    report = gpulab.profile(gelu, x)
    assert report["launches"] == 1
    assert report.launches[0].kernel == "gelu"
    assert report["global_load_bytes"] == report["global_store_bytes"] == 4096


def test_arguments_can_be_changed_in_place() -> None:
    @cp.fuse()
    def step(x: Any, v: Any, dt: Any) -> None:
        v -= x * dt
        x += v * dt
        x[...] = cp.minimum(x, 10)

    x, v = cp.asarray(X), cp.zeros(X.shape)
    expected_v = -X * 0.5
    expected_x = np.minimum(X + expected_v * 0.5, 10)
    assert step(x, v, 0.5) is None
    np.testing.assert_allclose(v.get(), expected_v)
    np.testing.assert_allclose(x.get(), expected_x)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, y: cp.sum(x * y, axis=-1),
    "norm": lambda x, y: cp.sqrt(cp.sum((x - y) ** 2, axis=1, keepdims=True)) * 2,
    "mean": lambda x, y: (x + y).mean(axis=0),
    "max": lambda x, y: (x * y).max(),
    "min": lambda x, y: cp.amin(x, axis=0),
    "any": lambda x, y: cp.any(x > y, axis=0),
    "prod": lambda x, y: cp.prod(1 + x / 10, axis=1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_may_be_the_last_step(name: str) -> None:
    function = REDUCTIONS[name]
    x, y = cp.asarray(X), cp.asarray(Y)
    expected, found = function(x, y), cp.fuse(kernel_name="fused")(function)(x, y)
    assert (expected.shape, expected.dtype) == (found.shape, found.dtype)
    np.testing.assert_allclose(found.get(), expected.get(), rtol=1e-13)


def test_the_smallest_integer_is_a_maximum_too() -> None:
    lowest = cp.full(5, -(2**63), dtype=cp.int64)
    assert int(cp.fuse(kernel_name="f")(lambda x: x.max())(lowest)) == -(2**63)


def test_numbers_and_numpy_arrays_are_left_to_the_function() -> None:
    @cp.fuse()
    def double(x: Any) -> Any:
        return x * 2

    assert double(3) == 6
    assert isinstance(double(np.ones(2)), np.ndarray)


MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "a function of whole arrays": (
        lambda x: cp.sort(x),
        "cupy.fuse: f uses cupy.sort, which cannot be fused: only functions of elements, and one reduction "
        "as the "
        "last step.",
    ),
    "a decision": (
        lambda x: x if x > 0 else -x,
        "cupy.fuse: f asks whether an array is true, which is not known before the kernel runs. "
        "Choose with cupy.where.",
    ),
    "a reduction in the middle": (
        lambda x: x - cp.sum(x),
        "cupy.fuse: f uses an array together with the result of a reduction, which cannot be fused: only "
        "functions "
        "of elements, and one reduction as the last step.",
    ),
    "an array from outside": (
        lambda x: x + cp.ones(3),
        "cupy.fuse: f uses an array from outside, which cannot be fused: only functions of elements, and one "
        "reduction as the last step.",
    ),
    "an index": (
        lambda x: x[0],
        "cupy.fuse: f uses an index, which cannot be fused: only functions of elements, and one reduction "
        "as the "
        "last step.",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_what_cannot_be_fused_is_said(what: str) -> None:
    function, message = MISTAKES[what]
    with pytest.raises(TypeError) as caught:
        cp.fuse(kernel_name="f")(function)(cp.ones(3))
    assert str(caught.value) == message
