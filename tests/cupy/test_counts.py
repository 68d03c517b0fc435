"""Kernels in CUDA C++ are counted as every kernel is, line by line."""

from __future__ import annotations

import pytest

import gpulab
from gpulab.analysis import cupyx as cupyx
from gpulab.frontends import cupy as cp
from gpulab.frontends.cuda.streams import NoClock

COPY = r"""
extern "C" __global__ void copy(const float* x, float* y, int stride, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i * stride];
}"""
N = 1024


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (32, 32)])
def test_sectors_of_a_strided_copy(stride: int, sectors: int) -> None:
    copy = cp.RawKernel(COPY, "copy")
    x, y = cp.zeros(N * stride, cp.float32), cp.empty(N, cp.float32)
    report = gpulab.profile(copy, (4,), (256,), (x, y, stride, N))
    assert report["global_load_requests"] == N // 32
    assert report["global_load_sectors"] == N // 32 * sectors
    assert report["global_store_sectors"] == N // 32 * 4
    assert report["global_bytes"] == 2 * 4 * N
    line = next(line for line in report.lines if line.text == "y[i] = x[i * stride];")
    assert line.line == 5
    assert line.metrics["global_sectors"] == report["global_sectors"]
    assert report.compiler.startswith("NVRTC ")


TRANSPOSE = r"""
template <int padding>
__global__ void transpose(const float* x, float* y, int n) {
    __shared__ float tile[32][32 + padding];
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = x[j * n + i];
    __syncthreads();
    y[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}"""


@pytest.mark.parametrize(("padding", "ways"), [(0, 32), (1, 1), (2, 2)])
def test_bank_conflicts_of_a_transpose(padding: int, ways: int) -> None:
    name = f"transpose<{padding}>"
    transpose = cp.RawModule(code=TRANSPOSE, name_expressions=[name]).get_function(name)
    x, y = cp.arange(64 * 64, dtype=cp.float32).reshape(64, 64), cp.empty((64, 64), cp.float32)
    report = gpulab.profile(transpose, (2, 2), (32, 32), (x, y, 64))
    assert (y == x.T).all()
    assert report["shared_load_bank_conflict_ways"] == ways
    assert report["shared_store_bank_conflict_ways"] == 1
    assert report["global_sectors_per_request"] == 4
    assert report["barriers"] == 4 * 32


def test_atomics_and_divergence() -> None:
    histogram = cp.RawKernel(
        r"""
        extern "C" __global__ void histogram(const unsigned char* x, int* bins) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (x[i] & 1) atomicAdd(&bins[x[i]], 1);
        }""",
        "histogram",
    )
    x, bins = cp.arange(256, dtype=cp.uint8), cp.zeros(256, cp.int32)
    report = gpulab.profile(histogram, (1,), (256,), (x, bins))
    assert report["global_atomics"] == 128
    assert report["divergent_branches"] == 8


def test_an_elementwise_kernel_reads_and_writes_each_element_once() -> None:
    add = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    x = cp.ones((32, 32), cp.float32)
    report = gpulab.profile(add, x, x)
    assert report["global_load_bytes"] == 2 * 4096
    assert report["global_store_bytes"] == 4096
    assert report["global_sectors_per_request"] == 4
    assert (report["blocks"], report["threads"]) == (8, 1024)
    across = gpulab.profile(add, x, cp.ones((32, 64), cp.float32)[:, ::2])
    assert across["global_load_sectors"] == 32 * 4 + 32 * 8


def test_a_reduction_along_rows_or_columns_reads_side_by_side() -> None:
    total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    x = cp.ones((64, 512), cp.float32)
    for axis in (0, 1):
        report = gpulab.profile(lambda axis=axis: total(x, axis=axis))
        assert report["global_load_bytes"] == x.nbytes
        assert report["global_load_sectors_per_request"] == 4


def test_what_headers_do_is_counted_on_the_learners_line() -> None:
    kernel = cp.RawKernel(
        r"""#include <cuda_fp16.h>
        #include <cooperative_groups.h>
        extern "C" __global__ void f(const __half* x, __half* y) {
            auto block = cooperative_groups::this_thread_block();
            int i = block.thread_rank();
            y[i] = __hmul(x[i], x[i]);
            block.sync();
        }""",
        "f",
    )
    x = cp.ones(64, cp.float16)
    report = gpulab.profile(kernel, (1,), (64,), (x, cp.empty_like(x)))
    assert {line.file for line in report.lines} == {next(iter(report.lines)).file}
    assert next(line for line in report.lines if line.metrics["barriers"]).text == "block.sync();"


def test_a_benchmark_counts_where_it_cannot_time() -> None:
    copy = cp.RawKernel(COPY, "copy")
    x, y = cp.zeros(N, cp.float32), cp.empty(N, cp.float32)
    counted = cupyx.profiler.benchmark(copy, ((4,), (256,), (x, y, 1, N)), n_repeat=100)
    assert counted.report is not None
    assert str(counted) == (
        "copy                : not timed, for the simulated device has no clock. One call makes 1 launch: "
        f"{counted.report['instructions']:,} warp instructions, 4 KiB read and 4 KiB written in global "
        f"memory."
    )
    with pytest.raises(NoClock, match=r"benchmark of copy: not timed.* Its \.report holds"):
        counted.gpu_times  # noqa: B018
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    end.record()
    with pytest.raises(NoClock, match=r"cupy\.cuda\.get_elapsed_time\(\): the simulated device has no clock"):
        cp.cuda.get_elapsed_time(start, end)


def test_what_is_known_of_a_kernel() -> None:
    copy = cp.RawKernel(COPY, "copy", options=("--maxrregcount=32",))
    attributes = copy.attributes
    assert attributes["shared_size_bytes"] == attributes["local_size_bytes"] == 0
    assert attributes["max_threads_per_block"] == 1024
    assert attributes["max_dynamic_shared_size_bytes"] == 49152
    assert attributes["ptx_version"] == attributes["binary_version"] == 80
    assert 4 <= copy.num_regs <= 32
    assert repr(copy) == "<RawKernel copy(const float* x, float* y, int stride, int n)>"
