"""ElementwiseKernel: broadcasting, types, raw parameters, layouts; and its mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from gpulab.frontends import cupy as cp
from gpulab.simulator.compile import CompileError
from gpulab.simulator.simt import OutOfBounds

squared_difference = cp.ElementwiseKernel("T x, T y", "T z", "T d = x - y; z = d * d", "squared_difference")


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4), st.sampled_from("iqfd"))
@settings(max_examples=25)
def test_arrays_are_broadcast(found: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 50, shape).astype(dtype) for shape in found.input_shapes)
    result = squared_difference(cp.asarray(x), cp.asarray(y))
    assert result.dtype == dtype
    assert np.array_equal(result.get(), (x - y) ** 2)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda a: a,
    "columns": lambda a: a.T,
    "every other": lambda a: a[::2, 1:],
    "backwards": lambda a: a[::-1, ::-1],
    "one row again and again": lambda a: a[:1],
    "three axes": lambda a: a.reshape(2, 3, 4).transpose(2, 0, 1),
    "one element": lambda a: a[2, 1],
    "nothing": lambda a: a[:0],
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("reduce_dims", [True, False])
def test_any_layout(name: str, reduce_dims: bool) -> None:
    scale = cp.ElementwiseKernel("T x", "T y", "y = 3 * x", "scale", reduce_dims=reduce_dims)
    host = np.arange(24.0).reshape(6, 4)
    x, out = cp.asarray(host), cp.asarray(np.zeros_like(host))
    expected = 3 * LAYOUTS[name](host)
    assert np.array_equal(scale(LAYOUTS[name](x)).get(), expected)
    if name != "one row again and again":
        scale(LAYOUTS[name](x), LAYOUTS[name](out))
        assert np.array_equal(LAYOUTS[name](out).get(), expected)


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D"])
def test_every_dtype(dtype: str) -> None:
    host = np.arange(10).astype(dtype)
    copied = cp.ElementwiseKernel("T x, T one", "T y", "y = x * one", "copied")(cp.asarray(host), 1)
    assert copied.dtype == dtype
    assert np.array_equal(copied.get(), host)


def test_scalars_take_the_type_of_their_placeholder() -> None:
    kernel = cp.ElementwiseKernel("T x, T a, float32 b", "T y, float64 z", "y = x + a; z = b / 2", "f")
    y, z = kernel(cp.arange(3, dtype=cp.int16), np.int64(4), 3)
    assert (y.dtype, z.dtype) == (np.int16, np.float64)
    assert y.get().tolist() == [4, 5, 6]
    assert z.get().tolist() == [1.5] * 3


def test_raw_parameters_are_indexed_by_hand() -> None:
    reverse = cp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "add_reverse")
    x = cp.arange(6.0)
    assert reverse(x, x).get().tolist() == [5] * 6
    assert reverse(x, cp.arange(12.0)[::2]).get().tolist() == [10, 9, 8, 7, 6, 5]
    gather = cp.ElementwiseKernel("raw T x, raw int32 at", "T y", "y = x[at[i]]", "gather")
    found = gather(cp.arange(10.0), cp.array([3, 1, 4], dtype=cp.int32), size=3)
    assert found.get().tolist() == [3, 1, 4]
    corner = cp.ElementwiseKernel(
        "raw T x", "T y", "ptrdiff_t at[] = {i, x.shape()[1] - 1}; y = x[at] + x.size()", "corner"
    )
    matrix = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(corner(cp.asarray(matrix), size=4).get(), matrix[:, 2] + 12)
    assert np.array_equal(corner(cp.asarray(matrix.T), size=3).get(), matrix.T[:, 3] + 12)


def test_a_loop_has_a_beginning_an_end_and_a_preamble() -> None:
    kernel = cp.ElementwiseKernel(
        "T x",
        "T y, raw int32 threads",
        "y = twice(x); mine += 1",
        "f",
        preamble="template <typename T> __device__ T twice(T x) { return x + x; }",
        loop_prep="int mine = 0",
        after_loop="atomicAdd(&threads[0], mine)",
    )
    y, threads = cp.empty(1000), cp.zeros(1, cp.int32)
    kernel(cp.arange(1000.0), y, threads)
    assert np.array_equal(y.get(), np.arange(1000) * 2)
    assert int(threads[0]) == 1000


def test_what_a_call_returns() -> None:
    x = cp.ones(2)
    two = cp.ElementwiseKernel("T x", "T y, T z", "y = x; z = -x")
    assert [r.get().tolist() for r in two(x)] == [[1, 1], [-1, -1]]
    assert cp.ElementwiseKernel("T x", "T y", "y = x", return_tuple=True)(x)[0].get().tolist() == [1, 1]
    out = cp.empty(2)
    assert cp.ElementwiseKernel("T x", "T y", "y = x")(x, out) is out
    assert cp.ElementwiseKernel("T x", "T y", "y = x", no_return=True)(x, out) is None


def test_the_text_is_made_once_for_each_kind_of_arguments() -> None:
    kernel = cp.ElementwiseKernel("T x", "T y", "y = x + 1", "increment")
    for size in (3, 5):
        kernel(cp.zeros(size))
    assert len(kernel._cached_codes) == 1
    kernel(cp.zeros(3, cp.float32))
    assert list(kernel._cached_codes) == [(np.float64, np.float64), (np.float32, np.float32)]
    assert "y = x + 1;" in kernel.cached_code


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a wrong number of arguments": (
        lambda: squared_difference(cp.ones(3)),
        TypeError,
        "Wrong number of arguments for 'squared_difference'. It must be either 2 or 3 (with outputs), but "
        "given 1.",
    ),
    "two types for one letter": (
        lambda: squared_difference(cp.ones(3), cp.ones(3, cp.float32)),
        TypeError,
        "Type is mismatched. y float32 float64 T: in squared_difference T stands for one type, and `x` is "
        "float64. "
        "Convert with .astype(), or use another letter.",
    ),
    "another type than declared": (
        lambda: cp.ElementwiseKernel("float32 x", "float32 y", "y = x", "f")(cp.ones(3)),
        TypeError,
        "Type is mismatched. x float64 float32: f has `x` as float32, but got an array of float64; convert "
        "it with "
        ".astype(cupy.float32), or declare it as T.",
    ),
    "a letter that no array explains": (
        lambda: cp.ElementwiseKernel("T x", "U y", "y = x", "f")(cp.ones(3)),
        TypeError,
        "f: the type U of `y` is not known: no array argument has it. Pass the output array too, or "
        "declare a dtype "
        "such as float32.",
    ),
    "shapes that do not fit": (
        lambda: squared_difference(cp.ones(3), cp.ones(4)),
        ValueError,
        "shape mismatch: objects cannot be broadcast to a single shape.  Mismatch is between arg 0 with "
        "shape (3,) "
        "and arg 1 with shape (4,).",
    ),
    "an output of another shape": (
        lambda: squared_difference(cp.ones(3), cp.ones(3), cp.ones(4)),
        ValueError,
        None,
    ),
    "a NumPy array": (
        lambda: squared_difference(cp.ones(3), np.ones(3)),
        TypeError,
        "Unsupported type <class 'numpy.ndarray'>: squared_difference takes device arrays; pass "
        "cupy.asarray(…).",
    ),
    "a type that is none": (
        lambda: cp.ElementwiseKernel("flot x", "T y", "y = x"),
        ValueError,
        "'flot' in 'flot x' is no type: write a dtype, such as float32, or one letter that stands for the "
        "dtype of "
        "an argument, such as T.",
    ),
    "a parameter without a name": (
        lambda: cp.ElementwiseKernel("T", "T y", "y = x"),
        ValueError,
        "Syntax error: 'T' is no parameter; write a type and a name, as in 'float32 x'.",
    ),
    "an unknown keyword": (
        lambda: cp.ElementwiseKernel("row T x", "T y", "y = x"),
        ValueError,
        "Unknown keyword 'row' in 'row T x'; the only one is 'raw'.",
    ),
    "a name that is none": (
        lambda: cp.ElementwiseKernel("T x", "T y", "y = x", "my kernel"),
        ValueError,
        'Invalid kernel name: "my kernel"; write a letter or _, then letters, digits and _.',
    ),
    "a parameter called i": (
        lambda: cp.ElementwiseKernel("T i", "T y", "y = i"),
        ValueError,
        "Can not use 'i' as a parameter name: it is the number of the element.",
    ),
    "code that is none": (
        lambda: cp.ElementwiseKernel("float32 x", "float32 y", "y = x + q", "f")(cp.ones(3, cp.float32)),
        CompileError,
        "CompileError in f, line 7\n"
        "    7 │ y = x + q;\n"
        'identifier "q" is undefined\n'
        "Is it misspelt, or declared further down?",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_gets_its_message(what: str) -> None:
    do, kind, message = MISTAKES[what]
    with pytest.raises(kind) as caught:
        do()
    if message is not None:
        assert str(caught.value) == message


def test_a_raw_index_outside_its_array_is_a_fault_that_names_it() -> None:
    shift = cp.ElementwiseKernel("raw T x", "T y", "y = x[i + 1]", "shift")
    with pytest.raises(OutOfBounds, match=r"read x\[3\]; x has 3 elements \(float32\)\.") as caught:
        shift(cp.ones(3, cp.float32), cp.empty(3, cp.float32))
    assert "│ y = x[i + 1];" in str(caught.value)
