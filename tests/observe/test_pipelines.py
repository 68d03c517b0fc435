"""Who loads and who stores, how often mbarriers go round, and what is on its way behind a wait."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp
from gpulab.checks.run import reference_device
from gpulab.simulator import device as devices

START = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
__device__ void wait(unsigned long long* bar, int parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {}
}
__device__ void bring(void* slot, const void* from, unsigned bytes, unsigned long long* full) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, bytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slot, from, bytes, full);
}
extern "C" __global__ void kernel(const float* x, float* out, int tiles) {
    __shared__ alignas(128) float slot[4][32];
    __shared__ unsigned long long full[4];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    if (t < 4) {
        ptx::mbarrier_init(&full[t], 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
"""
# Tiles of 128 bytes are sent `ahead` turns before the turn in which they are read.
AHEAD = """
    for (int k = 0; k < AHEAD && k < tiles; k++)
        if (t == 0) bring(slot[k], x + 32 * k, 128, &full[k]);
    for (int k = 0; k < tiles; k++) {
        int next = k + AHEAD;
        if (t == 0 && next < tiles) bring(slot[next % 4], x + 32 * next, 128, &full[next % 4]);
        wait(&full[k % 4], k / 4 & 1);
        if (warp == 1) out[32 * k + lane] = slot[k % 4][lane];
        __syncthreads();
    }
"""


def counted(body: str, tiles: int, blocks: int = 2) -> gpulab.Report:
    x = cp.asarray(np.random.default_rng(0).random(blocks * tiles * 32, dtype=np.float32))
    out = cp.zeros_like(x)
    with reference_device("H100"):
        kernel = cp.RawKernel(START + body + "\n}\n", "kernel")
        report = gpulab.profile(kernel, (blocks,), (64,), (x, out, cp.int32(tiles)))
    assert np.array_equal(out.get(), x.get())
    return report


@pytest.mark.parametrize("ahead", [0, 1, 2, 3])
def test_what_is_on_its_way_behind_a_wait_is_what_was_sent_ahead(ahead: int) -> None:
    report = counted(AHEAD.replace("AHEAD", str(ahead)), tiles=7)
    on_their_way = [min(ahead, 6 - k) for k in range(7)]
    assert report["bulk_bytes_in_flight"] == pytest.approx(128 * sum(on_their_way) / 7)


@pytest.mark.parametrize("tiles, rounds", [(1, 1), (4, 1), (5, 2), (13, 4)])
def test_an_mbarrier_has_a_phase_for_every_round_of_its_ring(tiles: int, rounds: int) -> None:
    assert counted(AHEAD.replace("AHEAD", "2"), tiles)["mbarrier_phases"] == rounds


def test_a_kernel_without_mbarriers_has_no_phases_and_nothing_on_its_way() -> None:
    report = counted("for (int i = t; i < 32 * tiles; i += 64) out[i] = x[i];", tiles=3)
    assert report["mbarrier_phases"] == 0
    assert report["bulk_bytes_in_flight"] is None


@pytest.mark.parametrize(
    "body, mixed",
    [
        pytest.param("for (int i = t; i < 32 * tiles; i += 64) out[i] = x[i];", 4, id="all load and store"),
        pytest.param(
            "if (warp == 1) for (int i = lane; i < 32 * tiles; i += 32) out[i] = x[i];", 2, id="one"
        ),
        pytest.param(AHEAD.replace("AHEAD", "1"), 0, id="one sends copies, the other stores"),
        pytest.param(AHEAD.replace("AHEAD", "1").replace("t == 0", "t == 32"), 2, id="one does both"),
        pytest.param(
            "for (int k = 0; k < tiles; k++) {"
            " if (warp == 0) slot[0][lane] = x[32 * k + lane]; __syncthreads();"
            " if (warp == 1) out[32 * k + lane] = slot[0][lane]; __syncthreads(); }",
            0,
            id="one loads, the other stores",
        ),
        pytest.param(
            "float* from = const_cast<float*>(x); if (warp == 1)"
            " for (int i = lane; i < 32 * tiles; i += 32) out[i] = atomicAdd(&from[i], 0.0f);",
            2,
            id="one loads by atomics",
        ),
    ],
)
def test_a_warp_that_loads_and_stores_is_mixed_in_every_block(body: str, mixed: int) -> None:
    assert counted(body, tiles=3)["mixed_warps"] == mixed


ZEROS = """
extern "C" __global__ void zeros(const float4* x, float4* out) {
    __shared__ float4 tile[2][32];
    unsigned first = __cvta_generic_to_shared(&tile[0][threadIdx.x]), second = first + 512;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(first), "l"(x + threadIdx.x));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(second), "l"(x + threadIdx.x), "r"(BYTES));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    out[threadIdx.x] = tile[0][threadIdx.x];
    asm volatile("cp.async.wait_all;" ::: "memory");
}
"""


@pytest.mark.parametrize("brought", [0, 4, 16])
def test_bytes_that_are_filled_with_zeros_are_not_on_their_way(brought: int) -> None:
    x, out = cp.ones(128, dtype=np.float32), cp.zeros(128, dtype=np.float32)
    with reference_device("A100"):
        kernel = cp.RawKernel(ZEROS.replace("BYTES", str(brought)), "zeros")
        report = gpulab.profile(kernel, (1,), (32,), (x, out))
    # 16 bytes of each thread arrive with `brought` behind them, then those with nothing behind.
    assert report["async_bytes_in_flight"] == pytest.approx(16 * brought / (16 + brought))


def test_a_lane_that_arrives_for_its_warp_at_the_very_first_phase_hands_over_what_all_lanes_wrote() -> None:
    from gpulab.simulator.observe import Races

    body = """
    if (warp == 0) { slot[0][lane] = x[lane]; __syncwarp(); if (lane == 0) ptx::mbarrier_arrive(&full[0]); }
    else { wait(&full[0], 0); out[lane] = slot[0][31 - lane]; }
    """
    x, out = cp.arange(32, dtype=np.float32), cp.zeros(32, dtype=np.float32)
    races: dict[str, Races] = {}
    with reference_device("H100") as device:
        for name, text in {"met": body, "apart": body.replace("__syncwarp();", "")}.items():
            kernel = cp.RawKernel(START + text + "\n}\n", "kernel")

            def watch(launch: devices.Launch, name: str = name) -> Races:
                races[name] = Races(arrays=launch.arrays, replicated=launch.kernel.replicates)
                return races[name]

            with device.observed(watch):
                kernel((1,), (64,), (x, out, cp.int32(1)))
    assert not list(races["met"].findings)
    assert list(races["apart"].findings)
