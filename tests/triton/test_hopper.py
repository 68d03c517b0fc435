"""Triton and CUDA C++ on a GPU of capability 9.0: `tl.dot` becomes wgmma, and agrees with NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import triton.language as tl  # noqa: E402

import gpulab  # noqa: E402
from gpulab import cupy, triton  # noqa: E402
from gpulab.simulator import device  # noqa: E402


@pytest.fixture(autouse=True)
def hopper() -> Iterator[None]:
    before = device.current().gpu
    device.simulate("H100")
    yield
    device.current().gpu = before


@triton.jit
def product(a, b, c, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TOTAL: tl.constexpr):
    """A row-major product in tiles; b is stored by columns, so both operands are K-major."""
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    x, y = a + row[:, None] * k + inner[None, :], b + column[None, :] * k + inner[:, None]
    total = tl.zeros((M, N), TOTAL)
    for _ in range(0, k, K):
        total = tl.dot(tl.load(x), tl.load(y), total)
        x += K
        y += K
    tl.store(c + row[:, None] * n + column[None, :], total)


@triton.jit
def attention(q, k, v, out, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """The second product takes its A from registers: what the softmax has made of the first."""
    row, column, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + row[:, None] * D + d[None, :])
    most = tl.full((M,), float("-inf"), tl.float32)
    share = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        keys = tl.load(k + (start + column)[None, :] * D + d[:, None])
        scores = tl.dot(query, keys)
        more = tl.maximum(most, tl.max(scores, 1))
        weights, rest = tl.exp(scores - more[:, None]), tl.exp(most - more)
        share = share * rest + tl.sum(weights, 1)
        values = tl.load(v + (start + column)[:, None] * D + d[None, :])
        total = tl.dot(weights.to(tl.float16), values, total * rest[:, None])
        most = more
    tl.store(out + row[:, None] * D + d[None, :], (total / share[:, None]).to(tl.float16))


# One warpgroup multiplies 64 × 16 by 16 × 64, tiles of 8 rows × 16 bytes one after the other, no swizzle.
IN_CUDA = r"""
#include <cuda_fp16.h>

__device__ unsigned long long descriptor(const void* tile, int leading, int stride) {
    unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    return (start >> 4) | (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32;
}

extern "C" __global__ void __launch_bounds__(128) product(const __half* a, const __half* b, float* c, int k) {
    __shared__ alignas(128) __half left[64 * 16], right[64 * 16];
    int thread = threadIdx.x, row0 = blockIdx.x * 64, column0 = blockIdx.y * 64;
    float d[32] = {};
    for (int start = 0; start < k; start += 16) {
        for (int i = thread; i < 64 * 16; i += 128) {
            int row = i / 16, column = i % 16;
            int place = row / 8 * 128 + column / 8 * 64 + row % 8 * 8 + column % 8;
            left[place] = a[(row0 + row) * k + start + column];
            right[place] = b[(column0 + row) * k + start + column];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
            "%32, %33, 1, 1, 1, 0, 0;"
            : DS
            : "l"(descriptor(left, 128, 256)), "l"(descriptor(right, 128, 256)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    int n = gridDim.y * 64, row = row0 + thread / 32 * 16 + thread % 32 / 4, column = column0 + thread % 4 * 2;
    for (int i = 0; i < 32; i++)
        c[(row + i / 2 % 2 * 8) * n + column + i / 4 * 8 + i % 2] = d[i];
}
""".replace("DS", ", ".join(f'"+f"(d[{i}])' for i in range(32)))


def matrices(m: int, n: int, k: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """A, and B by columns, of small whole numbers, so that every sum is exact."""
    generator = torch.Generator().manual_seed(m + n + k)
    a, b = (torch.randint(-4, 5, shape, generator=generator) for shape in ((m, k), (n, k)))
    return a.to(dtype), b.to(dtype)


@pytest.mark.parametrize(
    ("dtype", "opcode"),
    [
        (torch.float16, "m64n64k16.f32.f16.f16"),
        (torch.bfloat16, "m64n64k16.f32.bf16.bf16"),
        (torch.float32, "m64n64k8.f32.tf32.tf32"),
        (torch.float8_e4m3fn, "m64n64k32.f32.e4m3.e4m3"),
        (torch.float8_e5m2, "m64n64k32.f32.e5m2.e5m2"),
        (torch.int8, "m64n64k32.s32.s8.s8"),
    ],
    ids=str,
)
def test_a_product_in_every_type_runs_on_wgmma_and_agrees_with_numpy(dtype, opcode):
    a, b = matrices(128, 64, 128, dtype)
    whole = dtype == torch.int8
    c = torch.zeros(128, 64, dtype=torch.int32 if whole else torch.float32)
    tiles = {"M": 64, "N": 64, "K": 64, "TOTAL": tl.int32 if whole else tl.float32}
    made = product[2, 1](a, b, c, 64, 128, **tiles, num_warps=4)
    assert opcode in made.asm["ptx"] and made.made.kernel.cc == (9, 0)
    expected = a.double().numpy() @ b.double().numpy().T
    assert np.array_equal(c.numpy(), expected)


@pytest.mark.parametrize("warps", [4, 8])
def test_warpgroups_share_a_product_and_agree_with_cuda_cpp(warps):
    a, b = matrices(128, 128, 64, torch.float16)
    c = torch.zeros(128, 128)
    made = product[1, 1](a, b, c, 128, 64, M=128, N=128, K=32, TOTAL=tl.float32, num_warps=warps)
    assert "wgmma.mma_async" in made.asm["ptx"]
    kernel = cupy.RawKernel(IN_CUDA, "product", options=("-std=c++17",))
    found = cupy.zeros((128, 128), cupy.float32)
    kernel((2, 2), (128,), (cupy.asarray(a.numpy()), cupy.asarray(b.numpy()), found, np.int32(64)))
    assert np.array_equal(cupy.asnumpy(found), c.numpy())
    assert np.array_equal(c.numpy(), a.float().numpy() @ b.float().numpy().T)


def test_an_a_in_registers_comes_from_the_softmax():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(128, 64, generator=generator).half() for _ in range(3))
    out = torch.zeros(128, 64, dtype=torch.float16)
    made = attention[2,](q, k, v, out, 128, M=64, N=64, D=64, num_warps=4)
    assert "wgmma.mma_async" in made.asm["ptx"]
    expected = torch.softmax(q.float() @ k.float().T, 1) @ v.float()
    assert np.abs(out.float().numpy() - expected.numpy()).max() < 2e-3


@triton.jit
def doubled(x, BLOCK: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i))
    tl.extra.cuda.gdc_launch_dependents()


def test_programmatic_launches_are_taken_and_run_in_order():
    """`launch_pdl` lets a kernel begin before the one before it has ended; here one follows the other."""
    x = torch.arange(64, dtype=torch.int32)
    for _ in range(3):
        made = doubled[2,](x, BLOCK=32, launch_pdl=True)
    for half in ("wait", "launch_dependents"):
        assert f"griddepcontrol.{half}" in made.asm["ptx"]
    assert np.array_equal(x.numpy(), 8 * np.arange(64))


@pytest.mark.parametrize(
    "options", [{"clc": False}, {"debug": False}, {"maxnreg": 64}, {"extern_libs": {}}], ids=str
)
def test_a_launch_takes_every_option_that_triton_knows(options):
    x = torch.arange(64, dtype=torch.int32)
    doubled[2,](x, BLOCK=32, **options)
    assert np.array_equal(x.numpy(), 2 * np.arange(64))


def test_a_lab_may_ask_for_its_gpu():
    device.simulate("A100")
    assert "simulating an H100" in str(gpulab.start(gpu="H100"))
    assert device.current().cc == (9, 0)
    from gpulab.simulator import hardware

    with pytest.raises(hardware.UnknownGPU, match="did you mean H100"):
        gpulab.start(gpu="H1000")
