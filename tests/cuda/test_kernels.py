"""Real kernels on random inputs of every dtype give what NumPy gives."""

from __future__ import annotations

import math
import operator

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab import cuda

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
N = 67  # three warps, the last one not full


def arrays(dtype: str, count: int) -> st.SearchStrategy:
    """Tuples of `count` arrays of N random bit patterns, the ends of the range among them."""
    return st.integers(0, 2**32 - 1).map(lambda seed: tuple(np.array(_draw(dtype, seed, count))))


def _draw(dtype: str, seed: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
    values = np.frombuffer(rng.bytes(count * N * size), dtype).reshape(count, N).copy()
    if kind in "iu":
        ends = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
    else:
        limits = np.finfo(dtype)
        ends = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal]
    for end in ends:
        values[rng.integers(count), rng.integers(N)] = end
    return values


def launch(kernel, *args):
    kernel[3, 32](*args)


def of(operation):
    @cuda.jit
    def kernel(out, a, b):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = operation(a[i], b[i])

    return kernel


add = of(cuda.jit(device=True)(lambda x, y: x + y))
subtract = of(cuda.jit(device=True)(lambda x, y: x - y))
multiply = of(cuda.jit(device=True)(lambda x, y: x * y))
smaller = of(cuda.jit(device=True)(lambda x, y: min(x, y)))
both_bits = of(cuda.jit(device=True)(lambda x, y: x & y))
either_bit = of(cuda.jit(device=True)(lambda x, y: x | y))
other_bits = of(cuda.jit(device=True)(lambda x, y: x ^ y))
quotient = of(cuda.jit(device=True)(lambda x, y: x // y))
remainder = of(cuda.jit(device=True)(lambda x, y: x % y))
true_quotient = of(cuda.jit(device=True)(lambda x, y: x / y))

ALL = INTEGERS + FLOATS + COMPLEX


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(add, operator.add), (subtract, operator.sub), (multiply, operator.mul)],
    ids=["add", "subtract", "multiply"],
)
def test_arithmetic_of_every_dtype(kernel, expected, dtype: str) -> None:
    @settings(max_examples=8)
    @given(arrays(dtype, 2))
    def check(inputs) -> None:
        a, b = inputs
        out = np.zeros(N, dtype)
        launch(kernel, out, a, b)
        with np.errstate(all="ignore"):
            right = expected(a, b)
        if dtype in COMPLEX and expected is operator.mul:
            # Compilers may fuse a product into the sum: compare where nothing overflows or cancels.
            limits = np.finfo(dtype)
            with np.errstate(all="ignore"):
                size = np.abs(a.astype("c16")) * np.abs(b.astype("c16"))
                clear = (size < float(limits.max) / 4) & (size > float(limits.tiny) / float(limits.eps))
                assert (np.abs(out - right)[clear] <= 4 * float(limits.eps) * size[clear]).all()
        else:
            np.testing.assert_array_equal(out, right)

    check()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (both_bits, operator.and_),
        (either_bit, operator.or_),
        (other_bits, operator.xor),
        (smaller, np.minimum),
    ],
    ids=["and", "or", "xor", "min"],
)
def test_bits_and_order_of_integers(kernel, expected, dtype: str) -> None:
    @settings(max_examples=8)
    @given(arrays(dtype, 2))
    def check(inputs) -> None:
        out = np.zeros(N, dtype)
        launch(kernel, out, *inputs)
        np.testing.assert_array_equal(out, expected(*inputs))

    check()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("kernel", "expected"), [(quotient, np.floor_divide), (remainder, np.remainder)], ids=["//", "%"]
)
def test_division_of_integers_rounds_down_as_python_does(kernel, expected, dtype: str) -> None:
    @settings(max_examples=8)
    @given(arrays(dtype, 2))
    def check(inputs) -> None:
        a, b = inputs
        b = np.where(b == 0, 1, b).astype(dtype)
        if np.dtype(dtype).kind == "i":
            a = np.maximum(a, np.iinfo(dtype).min + 1)
        out = np.zeros(N, dtype)
        launch(kernel, out, a, b)
        np.testing.assert_array_equal(out, expected(a, b))

    check()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_is_rounded_exactly(dtype: str) -> None:
    @settings(max_examples=8)
    @given(arrays(dtype, 2))
    def check(inputs) -> None:
        out = np.zeros(N, dtype)
        launch(true_quotient, out, *inputs)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(out, inputs[0] / inputs[1])

    check()


@pytest.mark.parametrize("source", [*INTEGERS, "float32", "float64"])
def test_every_dtype_converts_to_every_other(source: str) -> None:
    @cuda.jit
    def convert(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, a):
        i = cuda.grid(1)
        if i < a.size:
            i8[i], i16[i], i32[i], i64[i] = a[i], a[i], a[i], a[i]
            u8[i], u16[i], u32[i], u64[i] = a[i], a[i], a[i], a[i]
            f32[i], f64[i] = a[i], a[i]

    # Values that all types hold, and negative ones for those with a sign: others differ between processors.
    values = np.r_[0, 1, 5, 100, 127].astype(source)
    signed = np.r_[values, -values].astype(source) if np.dtype(source).kind != "u" else values
    for given_values, targets in ((values, [*INTEGERS, "float32", "float64"]), (signed, INTEGERS[:4])):
        outputs = [np.zeros(given_values.size, target) for target in [*INTEGERS, "float32", "float64"]]
        launch(convert, *outputs, given_values)
        for out in outputs:
            if out.dtype.name in targets:
                np.testing.assert_array_equal(out, given_values.astype(out.dtype))


UNARY = {
    math.sqrt: (0, 1e30),
    math.exp: (-80, 80),
    math.log: (1e-30, 1e30),
    math.log2: (1e-30, 1e30),
    math.log10: (1e-30, 1e30),
    math.log1p: (-0.9, 1e20),
    math.expm1: (-50, 50),
    math.sin: (-100, 100),
    math.cos: (-100, 100),
    math.tan: (-1.5, 1.5),
    math.asin: (-1, 1),
    math.acos: (-1, 1),
    math.atan: (-1e6, 1e6),
    math.sinh: (-50, 50),
    math.cosh: (-50, 50),
    math.tanh: (-20, 20),
    math.asinh: (-1e6, 1e6),
    math.acosh: (1, 1e6),
    math.atanh: (-0.99, 0.99),
    math.erf: (-4, 4),
    math.erfc: (-4, 4),
    math.gamma: (0.5, 20),
    math.lgamma: (0.5, 50),
    math.floor: (-1e6, 1e6),
    math.ceil: (-1e6, 1e6),
    math.trunc: (-1e6, 1e6),
    math.fabs: (-1e6, 1e6),
}


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_functions_of_math_are_close_in_float64_and_float32(function) -> None:
    @cuda.jit
    def apply(out, a):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i])

    low, high = UNARY[function]
    rng = np.random.default_rng(1)
    for dtype in ("float64", "float32"):
        a = rng.uniform(low, min(high, 1e3), N).astype(dtype)
        out = np.zeros(N, dtype)
        launch(apply, out, a)
        right = np.array([function(float(x)) for x in a])
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(out.astype("f8"), right, rtol=8 * eps, atol=8 * eps)


def test_a_grid_stride_loop_covers_everything_once() -> None:
    @cuda.jit
    def increment(a):
        for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
            a[i] += 1

    a = np.zeros(1000, np.int32)
    increment[2, 64](a)
    assert (a == 1).all()


@given(st.integers(1, 70), st.integers(1, 70), st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_a_tiled_transpose_is_numpys(rows: int, columns: int, seed: int) -> None:
    a = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    out = np.zeros((columns, rows), np.float32)
    transpose[(-(-columns // 16), -(-rows // 16)), (16, 16)](a, out)
    assert (out == a.T).all()


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((16, 17), numba.float32)
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    i = cuda.blockIdx.y * 16 + cuda.threadIdx.x
    j = cuda.blockIdx.x * 16 + cuda.threadIdx.y
    if i < out.shape[1] and j < out.shape[0]:
        out[j, i] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def test_a_tiled_matrix_product_is_numpys() -> None:
    size, tile = 48, 16

    @cuda.jit
    def multiply_matrices(a, b, c):
        left = cuda.shared.array((tile, tile), numba.float64)
        right = cuda.shared.array((tile, tile), numba.float64)
        x, y = cuda.grid(2)
        total = 0.0
        for k in range(size // tile):
            left[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, k * tile + cuda.threadIdx.x]
            right[cuda.threadIdx.y, cuda.threadIdx.x] = b[k * tile + cuda.threadIdx.y, x]
            cuda.syncthreads()
            for m in range(tile):
                total += left[cuda.threadIdx.y, m] * right[m, cuda.threadIdx.x]
            cuda.syncthreads()
        c[y, x] = total

    a, b = np.random.default_rng(2).integers(-9, 9, (2, size, size)).astype(float)
    c = np.zeros((size, size))
    multiply_matrices[(3, 3), (tile, tile)](a, b, c)
    assert (c == a @ b).all()


def test_a_three_dimensional_grid_sees_every_place_once() -> None:
    @cuda.jit
    def mark(a):
        x, y, z = cuda.grid(3)
        if x < a.shape[0] and y < a.shape[1] and z < a.shape[2]:
            a[x, y, z] += 1 + x + 10 * y + 100 * z

    a = np.zeros((5, 6, 7), np.int64)
    mark[(2, 3, 4), (4, 2, 2)](a)
    x, y, z = np.indices(a.shape)
    assert (a == 1 + x + 10 * y + 100 * z).all()


def test_threads_that_leave_early_do_not_stop_the_others() -> None:
    @cuda.jit
    def collatz(out):
        i = cuda.grid(1)
        if i == 0 or i >= out.size:
            return
        n, steps = i, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        out[i] = steps

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    out = np.zeros(100, np.int32)
    collatz[2, 64](out)
    assert list(out) == [0, *(steps(n) for n in range(1, 100))]


def test_slices_and_views_inside_a_kernel() -> None:
    @cuda.jit
    def sums_of_rows(a, out):
        i = cuda.grid(1)
        if i < a.shape[0]:
            row = a[i, 1:-1]
            total = 0.0
            for x in row:
                total += x
            out[i] = total

    a, out = np.arange(20.0).reshape(4, 5), np.zeros(4)
    sums_of_rows[1, 32](a, out)
    assert (out == a[:, 1:-1].sum(axis=1)).all()


def test_reshape_inside_a_kernel() -> None:
    @cuda.jit
    def read_as_rows(a, out):
        rows = a.reshape(3, 4)
        out[cuda.threadIdx.y, cuda.threadIdx.x] = rows[cuda.threadIdx.y, cuda.threadIdx.x]

    a, out = np.arange(12.0), np.zeros((3, 4))
    read_as_rows[1, (4, 3)](a, out)
    assert (out == a.reshape(3, 4)).all()


def test_negative_indices_count_from_the_end() -> None:
    @cuda.jit
    def last(a, out):
        out[0] = a[-1]

    out = np.zeros(1)
    last[1, 1](np.arange(7.0), out)
    assert out[0] == 6
