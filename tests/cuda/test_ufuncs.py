"""cuda.vectorize, cuda.guvectorize and cuda.Reduce against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cuda

TYPES = ["float32(float32, float32)", "int64(int64, int64)"]


@pytest.fixture(scope="module")
def add():
    @cuda.vectorize(TYPES)
    def add(a, b):
        return a + b

    return add


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_a_ufunc_runs_over_host_arrays_of_any_shape(add, dtype):
    a = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    result = add(a, a)
    assert isinstance(result, np.ndarray) and result.dtype == dtype
    np.testing.assert_array_equal(result, a + a)


def test_a_ufunc_on_device_arrays_stays_on_the_device(add):
    a = np.arange(300, dtype=np.float32)
    result = add(cuda.to_device(a), cuda.to_device(a))
    assert cuda.is_cuda_array(result)
    np.testing.assert_array_equal(result.copy_to_host(), 2 * a)


@pytest.mark.parametrize("wrap", [np.asarray, cuda.to_device])
def test_a_ufunc_broadcasts(add, wrap):
    column = np.arange(3, dtype=np.float32).reshape(3, 1)
    row = np.arange(4, dtype=np.float32).reshape(1, 4)  # with one dimension fewer numba itself repeats row[0]
    np.testing.assert_array_equal(np.asarray(add(wrap(column), wrap(row))), column + row)


def test_a_ufunc_reduces(add):
    assert add.reduce(np.arange(1000, dtype=np.int64)) == 499_500


def test_a_ufunc_calls_device_functions_and_takes_scalars():
    @cuda.jit(device=True)
    def square(x):
        return x * x

    @cuda.vectorize("float32(float32, float32)")
    def squares(a, b):
        return square(a) + square(b)

    a = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(squares(a, 2), a * a + 4)


def test_a_generalised_ufunc_runs_over_the_outer_dimension():
    @cuda.guvectorize(["void(float32[:,:], float32[:], float32[:])"], "(m,n),(n)->(m)")
    def matvec(matrix, vector, out):
        for i in range(matrix.shape[0]):
            total = np.float32(0)
            for j in range(matrix.shape[1]):
                total += matrix[i, j] * vector[j]
            out[i] = total

    matrices = np.arange(5 * 2 * 3, dtype=np.float32).reshape(5, 2, 3)
    vector = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(matvec(matrices, vector), matrices @ vector)


@pytest.mark.parametrize("size", [1, 31, 127, 128, 129, 1025, 20_001])
def test_reductions_of_all_sizes(size):
    values = np.arange(size, dtype=np.float64)
    assert SUM(values) == values.sum()
    assert LARGEST(cuda.to_device(-values), init=-5) == max(-5, 0)


SUM = cuda.Reduce(lambda a, b: a + b)
LARGEST = cuda.reduce(lambda a, b: max(a, b))


def test_a_reduction_with_a_start_a_size_and_a_place():
    values, place = np.ones(50), cuda.to_device(np.zeros(1))
    assert SUM(values, init=3) == 53
    assert SUM(values, size=7) == 7
    assert SUM(np.ones(0), init=4) == 4
    assert SUM(values, res=place) is None and place[0] == 50
    with pytest.raises(ValueError, match="1-D"):
        SUM(np.ones((2, 2)))


def test_other_targets_and_missing_types_are_refused():
    with pytest.raises(ValueError, match="cpu"):
        cuda.vectorize(TYPES, target="cpu")
    with pytest.raises(TypeError, match="types"):
        cuda.vectorize(lambda a: a)
