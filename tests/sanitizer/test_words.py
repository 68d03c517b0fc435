"""What a finding says: which arrays by their names, with which values, and what to do."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import gpulab
from gpulab import cuda

from .corpus.whole import ALL


def told(language: str, name: str) -> str:
    """All findings of a wrong kernel of the corpus."""
    pair = next(pair for pair in ALL if (pair.language, pair.name) == (language, name))
    return "\n".join(map(str, gpulab.sanitize(pair.launch(mended=False), *pair.arguments())))


@pytest.mark.parametrize(
    ("language", "name", "said"),
    [
        ("numba", "a tile is read before it is full", "thread 63 of block 0 writes tile[63] = 64.0"),
        ("numba", "a tile is read before it is full", "thread 0 of block 0 reads tile[63] = 64.0"),
        ("numba", "two blocks write one element", "thread 0 of block 1 writes y[0] = 65.0"),
        ("numba", "a shared histogram counts without atomics", "writes counts[0] = 1"),
        ("numba", "a tile is read before it is full", "y[0] is once 64.0 and once nan"),
        ("CUDA C", "places are taken first come first served", "y[0] is once 11.0 and once 256.0"),
        ("numba", "a plain read meets an atomic", "shared array `total`"),
        ("numba", "the last block sums without a fence", "cuda.threadfence() before it is raised"),
        ("CUDA C", "the last block sums without a fence", "__threadfence() before it is raised"),
    ],
)
def test_a_finding_names_arrays_and_values(language, name, said):
    assert said in told(language, name)


def test_no_fence_is_advised_where_nobody_signals():
    assert "threadfence" not in told("numba", "a block reads what another one writes")


def test_floats_that_are_moved_as_words_show_no_value():
    @cuda.jit
    def turn(x, y):
        tile = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        y[t] = tile[63 - t]

    (race,) = gpulab.sanitize(turn[1, 64], np.ones(64, np.float32), np.zeros(64, np.float32)).of("race")
    assert str(np.float32(1).view(np.int32)) not in str(race)


def test_host_code_is_named_by_the_kernels_that_it_launches():
    @cuda.jit
    def double(x):
        x[cuda.grid(1)] *= 2

    assert gpulab.sanitize(lambda x: double[1, 64](x), cuda.to_device(np.ones(64))).kernel == "double"


def test_two_barriers_taken_for_one_are_told_with_both_lines_and_two_warps():
    pair = next(pair for pair in ALL if pair.name == "two barriers pair by accident")
    (finding,) = gpulab.sanitize(pair.launch(mended=False), *pair.arguments()).of("barrier")
    first, second = pair.lines
    head, one, other, *rest = str(finding).splitlines()
    assert head == f"Two barriers taken for one in kernel halves, lines {first} and {second}"
    assert one.startswith(f"    {first:4} │ cuda.syncthreads()")
    assert other.startswith(f"    {second:4} │ cuda.syncthreads()")
    assert rest[0] == (
        f"Warp 0 of block (0, 0, 0) waits at line {first}, while warp 1 waits at another one, line {second}."
    )


def test_the_kernel_that_takes_two_barriers_for_one_still_has_a_result():
    pair = next(pair for pair in ALL if pair.name == "two barriers pair by accident")
    results = []
    for mended in (False, True):
        x, y = pair.arguments()
        pair.launch(mended)(x, y)
        results.append(y)
    np.testing.assert_array_equal(results[0], [(64 - t) * (2 if t < 32 else 0.5) for t in range(64)])
    np.testing.assert_array_equal(results[1], np.arange(64, 0, -1))


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8"])
@pytest.mark.parametrize("space", ["shared", "global"])
def test_lanes_that_store_different_values_at_one_address_in_one_store_are_told(dtype, space):
    """Which of them stays is open in CUDA, so a result that was right here may be wrong on a GPU."""
    here = numba.from_dtype(np.dtype(dtype))

    @cuda.jit
    def pick(x, y):
        one = cuda.shared.array(1, here)
        if space == "global":
            y[0] = x[cuda.threadIdx.x]
        else:
            one[0] = x[cuda.threadIdx.x]
            cuda.syncthreads()
            y[cuda.threadIdx.x] = one[0]

    apart, alike = np.arange(32).astype(dtype), np.ones(32, dtype)
    (race,) = gpulab.sanitize(pick[1, 32], apart, np.zeros(32, dtype)).of("race")
    assert f"{space} array" in race.message
    assert "Several threads store different values there at once, and CUDA leaves open which one stays." in (
        race.message
    )
    assert not gpulab.sanitize(pick[1, 32], alike, np.zeros(32, dtype))
