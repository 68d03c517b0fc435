"""CUDA C++ of many kinds, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cupy as cp
from gpulab import sanitize
from gpulab.frontends import cupy as simulated_cupy
from gpulab.simulator.device import current
from gpulab.simulator.hardware import find as find_gpu

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def test_a_vector_sum() -> None:
    add = cp.RawKernel(
        r"""
        extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) z[i] = x[i] + y[i];
        }""",
        "add",
    )
    x, y, z = cp.asarray(floats(1000)), cp.asarray(floats(1000)), cp.empty(1000, cp.float32)
    add((4,), (256,), (x, y, z, 1000))
    assert np.array_equal(z.get(), x.get() + y.get())


SOFTMAX = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// A block for each row.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int columns) {
    __shared__ float partial[32];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    const float* row = x + blockIdx.x * columns;

    float largest = -1e38f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
    largest = cg::reduce(warp, largest, cg::greater<float>());
    if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = largest;
    block.sync();
    largest = partial[0];
    for (int w = 1; w < warp.meta_group_size(); ++w) largest = fmaxf(largest, partial[w]);
    block.sync();

    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - largest);
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = sum;
    block.sync();
    sum = 0;
    for (int w = 0; w < warp.meta_group_size(); ++w) sum += partial[w];

    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[blockIdx.x * columns + i] = expf(row[i] - largest) / sum;
}
"""


def test_cooperative_groups_of_blocks_and_tiles() -> None:
    softmax = cp.RawKernel(SOFTMAX, "softmax")
    x = cp.asarray(floats(20, 300))
    y = cp.empty_like(x)
    softmax((20,), (128,), (x, y, 300))
    exponential = np.exp(x.get() - x.get().max(axis=1, keepdims=True))
    np.testing.assert_allclose(y.get(), exponential / exponential.sum(axis=1, keepdims=True), rtol=2e-6)


def test_templates_by_name_expression() -> None:
    names = ["scale<float, 3>", "scale<int, -2>", "scale<double, 1>"]
    module = cp.RawModule(
        code=r"""
        template <typename T, int factor>
        __global__ void scale(T* x, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] *= T(factor);
        }""",
        name_expressions=names,
    )
    for name, dtype, factor in zip(names, ("float32", "int32", "float64"), (3, -2, 1), strict=True):
        x = cp.arange(100).astype(dtype)
        module.get_function(name)((2,), (64,), (x, 100))
        assert np.array_equal(x.get(), np.arange(100).astype(dtype) * factor)


def test_structures_by_value_and_in_arrays() -> None:
    move = cp.RawKernel(
        r"""
        struct Particle { float x, y; double mass; int id; };
        struct Step { float dx, dy; char axis; short count; };
        extern "C" __global__ void move(Particle* p, Step step, int n) {
            int i = threadIdx.x;
            if (i >= n) return;
            for (int k = 0; k < step.count; ++k) {
                if (step.axis == 'x') p[i].x += step.dx; else p[i].y += step.dy;
            }
            p[i].mass *= 2;
            p[i].id = -p[i].id;
        }""",
        "move",
    )
    particle = np.dtype([("x", "f4"), ("y", "f4"), ("mass", "f8"), ("id", "i4")], align=True)
    step = np.dtype([("dx", "f4"), ("dy", "f4"), ("axis", "S1"), ("count", "i2")], align=True)
    host = np.zeros(10, particle)
    host["x"], host["mass"], host["id"] = np.arange(10), 0.5, np.arange(10)
    particles = cp.asarray(host)
    move((1,), (32,), (particles, np.array([(0.25, 9, b"x", 4)], step), 10))
    moved = particles.get()
    assert np.array_equal(moved["x"], np.arange(10) + 1)
    assert not moved["y"].any()
    assert (moved["mass"] == 1).all()
    assert np.array_equal(moved["id"], -np.arange(10))


def test_dynamic_shared_memory_of_two_types() -> None:
    reverse = cp.RawKernel(
        r"""
        extern "C" __global__ void reverse(float* x, int* count, int n) {
            extern __shared__ float values[];
            int* order = (int*)(values + n);
            int i = threadIdx.x;
            values[i] = x[i];
            order[i] = n - 1 - i;
            __syncthreads();
            x[i] = values[order[i]];
            if (i == 0) count[blockIdx.x] = order[0] + 1;
        }""",
        "reverse",
    )
    x, count = cp.arange(64, dtype=cp.float32), cp.zeros(1, cp.int32)
    reverse((1,), (64,), (x, count, 64), shared_mem=64 * 8)
    assert np.array_equal(x.get(), np.arange(64)[::-1])
    assert int(count[0]) == 64


def test_more_than_48_kb_of_shared_memory_when_it_is_asked_for() -> None:
    fill = cp.RawKernel(
        r"""
        extern "C" __global__ void fill(float* y, int n) {
            extern __shared__ float buffer[];
            for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = i;
            __syncthreads();
            for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = buffer[n - 1 - i];
        }""",
        "fill",
    )
    n = 20_000
    y = cp.empty(n, cp.float32)
    fill.max_dynamic_shared_size_bytes = 4 * n
    fill((1,), (256,), (y, n), shared_mem=4 * n)
    assert np.array_equal(y.get(), np.arange(n)[::-1])


def test_half2_arithmetic() -> None:
    axpy = cp.RawKernel(
        r"""
        #include <cuda_fp16.h>
        extern "C" __global__ void axpy(const __half2* x, __half2* y, __half a, int pairs) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < pairs) y[i] = __hfma2(__half2half2(a), x[i], y[i]);
        }""",
        "axpy",
    )
    x, y = floats(256).astype(np.float16), floats(256).astype(np.float16)
    on_device = cp.asarray(y)
    axpy((1,), (128,), (cp.asarray(x), on_device, cp.float16(0.5), 128))
    expected = (np.float32(0.5) * x.astype(np.float32) + y.astype(np.float32)).astype(np.float16)
    assert np.array_equal(on_device.get(), expected)


def test_bfloat16() -> None:
    double_it = cp.RawKernel(
        r"""
        #include <cuda_bf16.h>
        extern "C" __global__ void twice(const __nv_bfloat16* x, float* y, int n) {
            int i = threadIdx.x;
            if (i < n) y[i] = __bfloat162float(__hadd(x[i], x[i]));
        }""",
        "twice",
    )
    values = np.arange(-8, 8, 0.5, dtype=np.float32)
    bits = cp.asarray((values.view(np.uint32) >> 16).astype(np.uint16))
    y = cp.empty(values.size, cp.float32)
    double_it((1,), (32,), (bits, y, values.size))
    assert np.array_equal(y.get(), 2 * values)


def test_warp_shuffles_and_votes() -> None:
    scan = cp.RawKernel(
        r"""
        extern "C" __global__ void scan(const int* x, int* sums, unsigned* odd) {
            int lane = threadIdx.x & 31, i = blockIdx.x * blockDim.x + threadIdx.x;
            int value = x[i];
            odd[i] = __ballot_sync(0xffffffff, value & 1);
            for (int step = 1; step < 32; step *= 2) {
                int other = __shfl_up_sync(0xffffffff, value, step);
                if (lane >= step) value += other;
            }
            sums[i] = value;
        }""",
        "scan",
    )
    x = RNG.integers(0, 100, 128).astype(np.int32)
    sums, odd = cp.empty(128, cp.int32), cp.empty(128, cp.uint32)
    scan((2,), (64,), (cp.asarray(x), sums, odd))
    assert np.array_equal(sums.get(), x.reshape(4, 32).cumsum(axis=1).ravel())
    expected = ((x.reshape(4, 32) & 1) << np.arange(32, dtype=np.uint32)).sum(axis=1).astype(np.uint32)
    assert np.array_equal(odd.get(), expected.repeat(32))


def test_inline_ptx() -> None:
    kernel = cp.RawKernel(
        r"""
        extern "C" __global__ void lanes(unsigned* y, const float* x, float* z) {
            unsigned lane, reversed;
            asm("mov.u32 %0, %%laneid;" : "=r"(lane));
            asm volatile("brev.b32 %0, %1;" : "=r"(reversed) : "r"(lane));
            asm("fma.rn.f32 %0, %1, %1, %2;" : "=f"(z[threadIdx.x]) : "f"(x[threadIdx.x]), "f"(1.0f));
            y[threadIdx.x] = reversed >> 27;
        }""",
        "lanes",
    )
    x, y, z = cp.asarray(floats(64)), cp.empty(64, cp.uint32), cp.empty(64, cp.float32)
    kernel((1,), (64,), (y, x, z))
    expected = [int(f"{lane:05b}"[::-1], 2) for lane in range(32)] * 2
    assert y.get().tolist() == expected
    np.testing.assert_allclose(z.get(), x.get() ** 2 + 1, rtol=1e-6)


def test_constant_memory_and_device_globals_shared_by_the_kernels_of_a_module() -> None:
    module = cp.RawModule(
        code=r"""
        __constant__ float weights[3] = {1, 2, 3};
        __device__ int launches = 5;
        __device__ float table[4];
        extern "C" __global__ void blur(const float* x, float* y, int n) {
            int i = threadIdx.x;
            if (i == 0) atomicAdd(&launches, 1);
            if (i > 0 && i < n - 1)
                y[i] = weights[0] * x[i - 1] + weights[1] * x[i] + weights[2] * x[i + 1] + table[i % 4];
        }
        extern "C" __global__ void count(int* out) { *out = launches; }
        """
    )
    x, y, out = cp.arange(32, dtype=cp.float32), cp.zeros(32, cp.float32), cp.zeros(1, cp.int32)
    blur, count = module.get_function("blur"), module.get_function("count")
    blur((1,), (32,), (x, y, 32))
    host = np.arange(32, dtype=np.float32)
    assert np.array_equal(y.get()[1:-1], host[:-2] + 2 * host[1:-1] + 3 * host[2:])
    weights = cp.ndarray((3,), cp.float32, module.get_global("weights"))
    weights[...] = cp.array([1, 1, 1], dtype=cp.float32)
    cp.ndarray((4,), cp.float32, module.get_global("table")).fill(0.5)
    blur((1,), (32,), (x, y, 32))
    assert np.array_equal(y.get()[1:-1], host[:-2] + host[1:-1] + host[2:] + 0.5)
    count((1,), (1,), (out,))
    assert int(out[0]) == 7


def test_printf(capsys: pytest.CaptureFixture[str]) -> None:
    hello = simulated_cupy.RawKernel(
        r"""
        extern "C" __global__ void hello(float x) {
            if (threadIdx.x < 2) printf("thread %d of %d: %.2f %s\n", threadIdx.x, blockDim.x, x, "ok");
        }""",
        "hello",
    )
    hello((1,), (4,), (cp.float32(1.5),))
    assert capsys.readouterr().out == "thread 0 of 4: 1.50 ok\nthread 1 of 4: 1.50 ok\n"


def test_double_precision_and_its_functions() -> None:
    kernel = cp.RawKernel(
        r"""
        extern "C" __global__ void f(const double* x, double* y, double scale, int n) {
            int i = threadIdx.x;
            if (i < n) y[i] = scale * sin(x[i]) + sqrt(fabs(x[i])) + exp(-x[i]) + pow(fabs(x[i]), 0.3);
        }""",
        "f",
    )
    x = RNG.normal(size=100)
    y = cp.empty(100)
    kernel((1,), (128,), (cp.asarray(x), y, 2.5, 100))
    expected = 2.5 * np.sin(x) + np.sqrt(np.abs(x)) + np.exp(-x) + np.abs(x) ** 0.3
    np.testing.assert_allclose(y.get(), expected, rtol=1e-14)


def test_64_bit_atomics() -> None:
    kernel = cp.RawKernel(
        r"""
        extern "C" __global__ void tally(const unsigned* x, unsigned long long* sum, unsigned long long* most,
                                         unsigned long long* all, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            unsigned long long big = (unsigned long long)x[i] << 20;
            atomicAdd(sum, big);
            atomicMax(most, big);
            atomicAnd(all, big | 1);
            unsigned long long old = *(volatile unsigned long long*)(sum + 1), seen;
            do { seen = old; old = atomicCAS(sum + 1, seen, seen + 3); } while (old != seen);
        }""",
        "tally",
    )
    x = RNG.integers(0, 2**32, 200, dtype=np.uint32)
    sum_, most, all_ = cp.zeros(2, cp.uint64), cp.zeros(1, cp.uint64), cp.full(1, 2**64 - 1, cp.uint64)
    kernel((2,), (128,), (cp.asarray(x), sum_, most, all_, 200))
    wide = x.astype(np.uint64) << np.uint64(20)
    assert sum_.get().tolist() == [int(wide.sum(dtype=np.uint64)), 600]
    assert int(most[0]) == int(wide.max())
    assert int(all_[0]) == int(np.bitwise_and.reduce(wide | np.uint64(1)))


def test_vector_types() -> None:
    kernel = cp.RawKernel(
        r"""
        extern "C" __global__ void dot(const float4* a, const float4* b, float* c, int2* pairs, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            float4 u = a[i], v = b[i];
            c[i] = u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
            pairs[i] = make_int2(i, -i);
        }""",
        "dot",
    )
    a, b = floats(100, 4), floats(100, 4)
    c, pairs = cp.empty(100, cp.float32), cp.empty((100, 2), cp.int32)
    kernel((1,), (128,), (cp.asarray(a), cp.asarray(b), c, pairs, 100))
    np.testing.assert_allclose(c.get(), (a * b).sum(axis=1), rtol=2e-5, atol=1e-6)
    assert np.array_equal(pairs.get(), np.stack([np.arange(100), -np.arange(100)], axis=1))


def test_launch_bounds_are_kept() -> None:
    kernel = simulated_cupy.RawKernel(
        r"""
        extern "C" __global__ void __launch_bounds__(64, 2) fill(int* y) {
            y[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
        }""",
        "fill",
    )
    y = simulated_cupy.empty(128, np.int32)
    kernel((2,), (64,), (y,))
    assert np.array_equal(y.get(), np.tile(np.arange(64), 2))
    assert kernel.max_threads_per_block == 64
    with pytest.raises(ValueError, match=r"fill: blocks of 128 threads, but launch_bounds promised"):
        kernel((1,), (128,), (y,))


def test_unions_switches_and_bit_fields() -> None:
    kernel = cp.RawKernel(
        r"""
        union Bits { float f; unsigned u; unsigned char bytes[4]; };
        struct Packed { unsigned low : 5, high : 11; };
        __device__ unsigned pick(Bits bits, int what) {
            switch (what) {
                case 0: return bits.u;
                case 1: return bits.bytes[3];
                case 2: bits.f += 1; return bits.u;
                case 3: case 4: return __popc(bits.u);
                case 7: { Packed p = {bits.u, bits.u >> 8}; return p.low * 10000 + p.high; }
                default: return what;
            }
        }
        extern "C" __global__ void kernel(const float* x, unsigned* y, int n) {
            int i = threadIdx.x;
            Bits bits;
            if (i < n) { bits.f = x[i]; y[i] = pick(bits, i % 9); }
        }""",
        "kernel",
    )
    x = floats(90)
    y = cp.empty(90, cp.uint32)
    kernel((1,), (96,), (cp.asarray(x), y, 90))
    u = x.view(np.uint32)
    ways = [
        u,
        u >> 24,
        (x + np.float32(1)).view(np.uint32),
        np.bitwise_count(u),
        np.bitwise_count(u),
        np.full(90, 5),
        np.full(90, 6),
        (u & 31) * 10000 + ((u >> 8) & 0x7FF),
        np.full(90, 8),
    ]
    expected = np.array([ways[i % 9][i] for i in range(90)], np.uint32)
    assert np.array_equal(y.get(), expected)


def test_a_tiled_matrix_product_with_templates_and_static_shared_memory() -> None:
    name = "matmul<16>"
    module = cp.RawModule(
        code=r"""
        template <int tile>
        __global__ void matmul(const float* a, const float* b, float* c, int n, int inner, int m) {
            __shared__ float left[tile][tile], right[tile][tile + 1];
            int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
            float sum = 0;
            for (int start = 0; start < inner; start += tile) {
                int i = start + threadIdx.x, j = start + threadIdx.y;
                left[threadIdx.y][threadIdx.x] = row < n && i < inner ? a[row * inner + i] : 0;
                right[threadIdx.y][threadIdx.x] = j < inner && column < m ? b[j * m + column] : 0;
                __syncthreads();
            #pragma unroll
                for (int k = 0; k < tile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
                __syncthreads();
            }
            if (row < n && column < m) c[row * m + column] = sum;
        }""",
        name_expressions=[name],
    )
    a, b = floats(50, 70), floats(70, 33)
    c = cp.empty((50, 33), cp.float32)
    module.get_function(name)((3, 4), (16, 16), (cp.asarray(a), cp.asarray(b), c, 50, 70, 33))
    np.testing.assert_allclose(c.get(), a @ b, rtol=1e-4, atol=1e-5)


def test_complex_numbers() -> None:
    kernel = cp.RawKernel(
        r"""
        #include <cupy/complex.cuh>
        extern "C" __global__ void f(const complex<float>* x, complex<float>* y, float a, double2 shift) {
            int i = threadIdx.x;
            y[i] = a * x[i] * x[i] + conj(x[i]) / complex<float>(2, 1) + complex<float>(shift.x, shift.y);
        }""",
        "f",
    )
    x = (floats(32) + 1j * floats(32)).astype(np.complex64)
    y = cp.empty(32, cp.complex64)
    kernel((1,), (32,), (cp.asarray(x), y, cp.float32(3), 1 - 2j))
    np.testing.assert_allclose(y.get(), 3 * x * x + x.conj() / (2 + 1j) + (1 - 2j), rtol=1e-5, atol=1e-5)


def test_recursion_free_device_functions_lambdas_and_function_templates() -> None:
    kernel = cp.RawKernel(
        r"""
        template <typename F> __device__ int fold(const int* x, int n, int start, F combine) {
            for (int i = 0; i < n; ++i) start = combine(start, x[i]);
            return start;
        }
        __device__ __noinline__ int collatz(int n) {
            int steps = 0;
            while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; ++steps; }
            return steps;
        }
        extern "C" __global__ void kernel(const int* x, int* y, int n) {
            int scale = threadIdx.x;
            int sum = fold(x, n, 0, [=](int a, int b) { return a + scale * b; });
            y[threadIdx.x] = sum + collatz(threadIdx.x + 1);
        }""",
        "kernel",
    )

    def collatz(n: int) -> int:
        return 0 if n == 1 else 1 + collatz(3 * n + 1 if n % 2 else n // 2)

    x = np.arange(10, dtype=np.int32)
    y = cp.empty(40, cp.int32)
    kernel((1,), (40,), (cp.asarray(x), y, 10))
    assert y.get().tolist() == [45 * i + collatz(i + 1) for i in range(40)]


def test_options_define_macros_and_the_standard() -> None:
    kernel = cp.RawKernel(
        r"""
        extern "C" __global__ void kernel(long* y) { if constexpr (N > 3) y[0] = N; else y[0] = __cplusplus; }
        """,
        "kernel",
        options=("-DN=7", "--std=c++20"),
    )
    y = cp.zeros(1, cp.int64)
    kernel((1,), (1,), (y,))
    assert int(y[0]) == 7


def test_a_grid_that_waits_for_itself() -> None:
    kernel = cp.RawKernel(
        r"""
        #include <cooperative_groups.h>
        namespace cg = cooperative_groups;
        extern "C" __global__ void kernel(const float* x, float* partial, float* total, int n) {
            auto grid = cg::this_grid();
            float sum = 0;
            for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
            atomicAdd(partial + blockIdx.x, sum);
            grid.sync();
            if (grid.thread_rank() == 0)
                for (int b = 0; b < gridDim.x; ++b) *total += partial[b];
        }""",
        "kernel",
        enable_cooperative_groups=True,
    )
    x, partial, total = cp.ones(1000, cp.float32), cp.zeros(4, cp.float32), cp.zeros(1, cp.float32)
    kernel((4,), (64,), (x, partial, total, 1000))
    assert float(total[0]) == 1000


def test_a_grid_that_waits_for_itself_is_no_larger_than_the_gpu() -> None:
    source = r"""
        #include <cooperative_groups.h>
        extern "C" __global__ void kernel(int* blocks) {
            cooperative_groups::this_grid().sync();
            if (threadIdx.x == 0) atomicAdd(blocks, 1);
        }"""
    kernel = simulated_cupy.RawKernel(source, "kernel", enable_cooperative_groups=True)
    blocks = simulated_cupy.zeros(1, "int32")
    with pytest.warns(UserWarning, match="the grid size will be reduced from 300 to 216, the most blocks"):
        kernel((300,), (1024,), (blocks,))
    assert int(blocks[0]) == 216


def test_tensor_cores_by_wmma() -> None:
    matmul = cp.RawKernel(
        r"""
        #include <mma.h>
        using namespace nvcuda;
        extern "C" __global__ void matmul(const __half* a, const __half* b, float* c, int inner, int m) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
            wmma::fill_fragment(sum, 0.0f);
            int row = blockIdx.y * 16, column = blockIdx.x * 16;
            for (int k = 0; k < inner; k += 16) {
                wmma::load_matrix_sync(left, a + row * inner + k, inner);
                wmma::load_matrix_sync(right, b + k * m + column, m);
                wmma::mma_sync(sum, left, right, sum);
            }
            for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2;
            wmma::store_matrix_sync(c + row * m + column, sum, m, wmma::mem_row_major);
        }""",
        "matmul",
    )
    a, b = floats(32, 64).astype(np.float16), floats(64, 48).astype(np.float16)
    c = cp.empty((32, 48), cp.float32)
    matmul((3, 2), (32,), (cp.asarray(a), cp.asarray(b), c, 64, 48))
    np.testing.assert_allclose(c.get(), 2 * a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)


# Type of a and b in the fragments, of their elements in memory, of the sum; m, n, k; their dtypes.
WMMA = {
    "bf16": ("__nv_bfloat16", "__nv_bfloat16", "float", (16, 16, 16), "uint16", "float32"),
    "tf32": ("wmma::precision::tf32", "float", "float", (16, 16, 8), "float32", "float32"),
    "s8": ("signed char", "signed char", "int", (32, 8, 16), "int8", "int32"),
    "u8": ("unsigned char", "unsigned char", "int", (8, 32, 16), "uint8", "int32"),
    "f64": ("double", "double", "double", (8, 8, 4), "float64", "float64"),
    "f16": ("__half", "__half", "__half", (16, 16, 16), "float16", "float16"),
}


@pytest.mark.parametrize("name", WMMA)
@pytest.mark.parametrize("layout", ["row", "col"])
def test_wmma_of_every_type(name: str, layout: str) -> None:
    kind, element, accumulator, (m, n, k), dtype, result = WMMA[name]
    shape = f"{m}, {n}, {k}, {kind}, wmma::{layout}_major"
    multiply = cp.RawKernel(
        f"""
        #include <mma.h>
        using namespace nvcuda;
        extern "C" __global__ void multiply(const {element}* a, const {element}* b, {accumulator}* c) {{
            wmma::fragment<wmma::matrix_a, {shape}> left;
            wmma::fragment<wmma::matrix_b, {shape}> right;
            wmma::fragment<wmma::accumulator, {m}, {n}, {k}, {accumulator}> sum;
            wmma::fill_fragment(sum, {accumulator}(1));
            wmma::load_matrix_sync(left, a, {k if layout == "row" else m});
            wmma::load_matrix_sync(right, b, {n if layout == "row" else k});
            wmma::mma_sync(sum, left, right, sum);
            wmma::store_matrix_sync(c, sum, {n}, wmma::mem_row_major);
        }}""",
        "multiply",
    )
    low = 0 if name == "u8" else -4
    a, b = (RNG.integers(low, 5, size).astype(np.float32) for size in ((m, k), (k, n)))
    order = "C" if layout == "row" else "F"
    given = []
    for host in (a, b):
        bits = (host.view(np.uint32) >> 16).astype(np.uint16) if name == "bf16" else host.astype(dtype)
        given.append(cp.asarray(bits.ravel(order)))
    c = cp.empty((m, n), result)
    multiply((1,), (32,), (*given, c))
    assert np.array_equal(c.get(), (a @ b + 1).astype(result))


def test_tensor_cores_by_inline_ptx() -> None:
    multiply = cp.RawKernel(
        r"""
        // c (16 × 8) = a (16 × 8) · b (8 × 8), one warp; a and c by rows, b by columns.
        extern "C" __global__ void multiply(const float* a, const float* b, float* c) {
            int group = threadIdx.x / 4, place = threadIdx.x % 4;
            unsigned a0 = __float_as_uint(a[group * 8 + place]);
            unsigned a1 = __float_as_uint(a[(group + 8) * 8 + place]);
            unsigned a2 = __float_as_uint(a[group * 8 + place + 4]);
            unsigned a3 = __float_as_uint(a[(group + 8) * 8 + place + 4]);
            unsigned b0 = __float_as_uint(b[group * 8 + place]);
            unsigned b1 = __float_as_uint(b[group * 8 + place + 4]);
            float d[4] = {};
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
            float2 top = {d[0], d[1]}, bottom = {d[2], d[3]};
            ((float2*)c)[group * 4 + place] = top;
            ((float2*)c)[(group + 8) * 4 + place] = bottom;
        }""",
        "multiply",
    )
    a, b = (RNG.integers(-8, 8, shape).astype(np.float32) for shape in ((16, 8), (8, 8)))
    c = cp.empty((16, 8), cp.float32)
    multiply((1,), (32,), (cp.asarray(a), cp.asarray(b.T.copy()), c))
    assert np.array_equal(c.get(), a @ b)


def test_copies_that_run_ahead() -> None:
    sum_ = cp.RawKernel(
        r"""
        #include <cuda_pipeline.h>
        extern "C" __global__ void total(const float4* x, float* y, int tiles) {
            __shared__ float4 buffer[2][64];
            int i = threadIdx.x;
            float sum = 0;
            __pipeline_memcpy_async(&buffer[0][i], &x[i], sizeof(float4));
            __pipeline_commit();
            for (int tile = 0; tile < tiles; ++tile) {
                int next = tile + 1;
                if (next < tiles)
                    __pipeline_memcpy_async(&buffer[next & 1][i], &x[next * 64 + i], sizeof(float4));
                __pipeline_commit();
                __pipeline_wait_prior(1);
                __syncthreads();
                float4 v = buffer[tile & 1][63 - i];
                sum += v.x + v.y + v.z + v.w;
                __syncthreads();
            }
            y[i] = sum;
        }""",
        "total",
    )
    x = RNG.integers(0, 9, (5, 64, 4)).astype(np.float32)
    y = cp.empty(64, cp.float32)
    sum_((1,), (64,), (cp.asarray(x), y, 5))
    assert np.array_equal(y.get(), x.sum(axis=(0, 2))[::-1])


def test_eight_bit_floats() -> None:
    kernel = cp.RawKernel(
        r"""
        #include <cuda_fp8.h>
        extern "C" __global__ void narrow(const float* x, __nv_fp8_e4m3* y, float* back) {
            int i = threadIdx.x;
            y[i] = __nv_fp8_e4m3(x[i]);
            back[i] = float(y[i]);
        }""",
        "narrow",
    )
    x = np.array([0, 1, 1.06, 1.07, -2.5, 448, 1000, 2**-9], np.float32)
    y, back = cp.empty(8, cp.uint8), cp.empty(8, cp.float32)
    kernel((1,), (8,), (cp.asarray(x), y, back))
    assert back.get().tolist() == [0, 1, 1, 1.125, -2.5, 448, 448, 2**-9]
    assert int(y[1]) == 0x38


BARRIER = r"""
#include <cuda/barrier>
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Each block turns its part of x around, twice: once written by its threads, once copied by the hardware.
extern "C" __global__ void turn(const float* x, float* y, float* z) {
    __shared__ Barrier barrier;
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x, last = blockDim.x - 1 - threadIdx.x;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    tile[threadIdx.x] = x[i];
    auto token = barrier.arrive();
    barrier.wait(std::move(token));
    y[i] = tile[last];
    barrier.arrive_and_wait();
    cuda::memcpy_async(&tile[threadIdx.x], &x[i], sizeof(float), barrier);
    WAIT
    z[i] = tile[last];
}
"""


@pytest.mark.parametrize("gpu", ["A100", "H100"])
def test_a_barrier_of_the_cuda_library_orders_what_threads_write_and_what_they_have_copied(gpu: str) -> None:
    x = floats(3, 256)
    device = current()
    before, device.gpu = device.gpu, find_gpu(gpu)
    try:
        for wait, findings in (("barrier.arrive_and_wait();", [False, False]), ("", [True, True])):
            turn = cp.RawKernel(BARRIER.replace("WAIT", wait), "turn")
            y, z = cp.zeros((3, 256), cp.float32), cp.zeros((3, 256), cp.float32)
            found = sanitize(turn, (3,), (256,), (cp.asarray(x), y, z))
            assert [bool(found), bool(found.of("barrier"))] == findings, str(found)
            assert np.array_equal(y.get(), x[:, ::-1])
            if wait:
                assert np.array_equal(z.get(), x[:, ::-1])
    finally:
        device.gpu = before
