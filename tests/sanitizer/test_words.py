"""What a finding says: which arrays by their names, with which values, and what to do."""

from __future__ import annotations

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
