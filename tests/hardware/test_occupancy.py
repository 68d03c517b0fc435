"""Occupancy by CUDA's rules: values worked out by hand, properties, and the vendor's own header."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import hardware
from gpulab.simulator.hardware import Capability, occupancy

KIB = 1024


@pytest.mark.parametrize(
    ("cc", "threads", "registers", "shared", "blocks", "limited_by"),
    [
        # 1,024 threads are 32 warps: 64 ÷ 32 = 2. 16 × 32 = 512 registers: 32 warps a quarter, 128 an SM.
        ("8.0", 1024, 16, 0, 2, ("warps",)),
        # 256 threads are 8 warps; 64 ÷ 8 = 8. 32 × 32 = 1,024: 16 a quarter, 64 an SM, 64 ÷ 8 = 8 as well.
        ("8.0", 256, 32, 0, 8, ("warps", "registers")),
        # 33 × 32 = 1,056, in steps of 256: 1,280. 16,384 ÷ 1,280 = 12 a quarter, 48 an SM, 48 ÷ 8 = 6.
        ("8.0", 256, 33, 0, 6, ("registers",)),
        # 40 × 32 = 1,280 exactly: the same 6 blocks as with 33 registers.
        ("8.0", 256, 40, 0, 6, ("registers",)),
        # 255 × 32 = 8,160 → 8,192: 2 a quarter, 8 an SM; 256 threads are 8 warps: 1 block.
        ("8.0", 256, 255, 0, 1, ("registers",)),
        # 32 threads are 1 warp: 64 by warps, but an SM holds no more than 32 blocks.
        ("8.0", 32, 16, 0, 32, ("blocks",)),
        # 1 thread takes a whole warp.
        ("8.0", 1, 16, 0, 32, ("blocks",)),
        # 33 threads take 2 warps: 32 by warps and by blocks.
        ("8.0", 33, 16, 0, 32, ("warps", "blocks")),
        # 100 threads are 4 warps: 16 blocks.
        ("8.0", 100, 16, 0, 16, ("warps",)),
        # 48 KiB + 1 KiB of the driver's = 49 KiB; 164 ÷ 49 = 3.
        ("8.0", 128, 16, 48 * KIB, 3, ("shared memory",)),
        # A 32 × 33 tile of float32 is 4,224 B + 1,024 = 5,248 = 41 × 128 B; 167,936 ÷ 5,248 = 32 blocks.
        # 20 × 32 = 640 → 768: 21 warps a quarter, 84 an SM, 84 ÷ 32 = 2 blocks, as by warps.
        ("8.0", 1024, 20, 4224, 2, ("warps", "registers")),
        # 1 B makes 1,025 → 1,152 B; 167,936 ÷ 1,152 = 145. Blocks bind at 32.
        ("8.0", 32, 16, 1, 32, ("blocks",)),
        # All that a block may have: 163 KiB + 1 KiB = 164 KiB: 1 block.
        ("8.0", 128, 16, 163 * KIB, 1, ("shared memory",)),
        # Volta keeps nothing for the driver: 96 ÷ 48 = 2.
        ("7.0", 128, 16, 48 * KIB, 2, ("shared memory",)),
        # Volta's steps are 256 B: 5,000 → 5,120; 98,304 ÷ 5,120 = 19.
        ("7.0", 64, 16, 5000, 19, ("shared memory",)),
        # Turing holds 32 warps: one block of 1,024, and 16 blocks of 2 warps each.
        ("7.5", 1024, 16, 0, 1, ("warps",)),
        ("7.5", 64, 16, 0, 16, ("warps", "blocks")),
        ("7.5", 32, 16, 0, 16, ("blocks",)),
        # GA10x holds 48 warps: one block of 32 warps leaves 16 unused.
        ("8.6", 1024, 16, 0, 1, ("warps",)),
        ("8.6", 768, 16, 0, 2, ("warps",)),
        ("8.6", 64, 16, 0, 16, ("blocks",)),
        # Ada takes 24 blocks where GA10x takes 16.
        ("8.9", 64, 16, 0, 24, ("warps", "blocks")),
        ("8.9", 256, 16, 40 * KIB, 2, ("shared memory",)),
        # Hopper: 228 KiB; 64 KiB + 1 KiB = 65; 228 ÷ 65 = 3.
        ("9.0", 256, 32, 64 * KIB, 3, ("shared memory",)),
        ("9.0", 384, 168, 200 * KIB, 1, ("registers", "shared memory")),
        ("10.0", 128, 128, 0, 4, ("registers",)),
        ("12.0", 1024, 16, 0, 1, ("warps",)),
        ("12.0", 128, 16, 30 * KIB, 3, ("shared memory",)),
    ],
)
def test_occupancy_is_what_the_rules_give_by_hand(
    cc: str, threads: int, registers: int, shared: int, blocks: int, limited_by: tuple[str, ...]
) -> None:
    got = occupancy(cc, threads, registers, shared)
    assert got.active_blocks == blocks
    assert got.limited_by == limited_by
    assert got.active_warps == blocks * -(-threads // 32)
    assert got.fraction == got.active_warps / got.max_warps
    assert not got.impossible


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "reason"),
    [
        (1025, 16, 0, "1,025 threads per block; at most 1,024 are allowed"),
        (32, 256, 0, "256 registers per thread; at most 255 are allowed"),
        # 1,024 threads × 65 registers: 2,304 a warp × 32 warps = 73,728.
        (1024, 65, 0, "65 registers for each of 32 warps make 73,728 registers per block; at most 65,536"),
        # 9 warps count as 12, because the check goes by quarters: 8,192 × 12 = 98,304.
        (288, 255, 0, "255 registers for each of 9 warps make 98,304 registers per block"),
        (128, 16, 163 * KIB + 1, "166,913 B of shared memory per block; at most 166,912 B are allowed"),
    ],
)
def test_a_launch_that_cannot_run_says_why(threads: int, registers: int, shared: int, reason: str) -> None:
    got = occupancy("A100", threads, registers, shared)
    assert (got.active_blocks, got.active_warps, got.fraction, got.limited_by) == (0, 0, 0.0, ())
    assert got.impossible.startswith(reason)
    assert str(got) == f"cannot run: {got.impossible}"


def test_all_reasons_are_given_at_once() -> None:
    got = occupancy("T4", 2048, 300, 65 * KIB)
    assert (
        got.impossible.count(";") >= 5 and "2,048 threads" in got.impossible and "66,560 B" in got.impossible
    )


@pytest.mark.parametrize("sizes", [(0, 1, 0), (-1, 1, 0), (32, -1, 0), (32, 1, -1)])
def test_sizes_that_are_no_sizes_are_refused_in_one_line(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1 thread per block") as fault:
        occupancy("A100", *sizes)
    assert "\n" not in str(fault.value)


def test_a_gpu_a_name_and_a_capability_give_the_same() -> None:
    by_name = occupancy("H100", 256, 40, 4096)
    assert by_name == occupancy(hardware.find("H100"), 256, 40, 4096) == occupancy((9, 0), 256, 40, 4096)
    assert by_name == occupancy("9.0", 256, 40, 4096) == occupancy(hardware.capability("9.0"), 256, 40, 4096)


@pytest.mark.parametrize(
    ("cluster", "clusters"),
    [
        # 66 TPCs in 8 GPCs: two of 9 and six of 8, so 18 and 16 SMs, of one block each.
        (2, 66),  # 2 · 9 + 6 · 8
        (4, 32),  # 2 · 4 + 6 · 4: two SMs of each large GPC are left over
        (8, 16),  # 2 · 2 + 6 · 2
        (16, 8),  # one in each
    ],
)
def test_a_cluster_has_all_its_blocks_in_one_gpc(cluster: int, clusters: int) -> None:
    got = occupancy("H100", 384, 168, 200 * KIB, cluster=cluster)
    assert (got.active_blocks, got.cluster, got.active_clusters) == (1, cluster, clusters)
    assert str(got).endswith(f"; {clusters} clusters of {cluster} at once")


def test_two_blocks_on_an_sm_may_be_of_one_cluster() -> None:
    assert occupancy("H100", 128, 64, 100 * KIB, cluster=4).active_blocks == 2
    assert occupancy("H100", 128, 64, 100 * KIB, cluster=4).active_clusters == 66  # 2 · 36/4 + 6 · 32/4


def test_clusters_that_cannot_be_say_why() -> None:
    assert "17 blocks per cluster; at most 16" in occupancy("H100", 128, cluster=17).impossible
    assert "clusters begin with compute capability 9.0" in occupancy("A100", 128, cluster=2).impossible
    assert occupancy("H100", 128, cluster=17).active_blocks == 0
    with pytest.raises(ValueError, match="1 block per cluster"):
        occupancy("H100", 128, cluster=0)
    assert occupancy("9.0", 128, cluster=2).active_clusters is None


def test_it_prints_as_the_report_shows_it() -> None:
    assert str(occupancy("A100", 1024, 16)) == "64 of 64 warps (100 %), limited by warps"
    assert str(occupancy("A100", 256, 32)) == "64 of 64 warps (100 %), limited by warps and registers"
    assert "steps of 256" in occupancy("A100", 256, 33).words["registers"]


def test_the_l1_that_is_left_follows_from_the_resident_blocks() -> None:
    """3 blocks of 49 KiB are 147 KiB: the 164 KiB carve-out, which leaves 28 of 192 KiB as L1."""
    assert occupancy("A100", 128, 16, 48 * KIB).carveout == 164 * KIB


launches = st.tuples(
    st.sampled_from(list(hardware.TABLE.values())),
    st.integers(1, 1100),
    st.integers(0, 260),
    st.integers(0, 240 * KIB),
)


@given(launches)
def test_an_sm_never_holds_more_than_it_has(launch: tuple[Capability, int, int, int]) -> None:
    cap, threads, registers, shared = launch
    got = occupancy(cap, threads, registers, shared)
    assert 0 <= got.active_warps <= cap.max_warps
    assert got.active_blocks <= cap.max_blocks
    assert got.active_blocks * got.registers_per_block <= cap.registers_per_sm
    assert got.active_blocks * got.shared_per_block <= cap.shared_per_sm
    assert (got.active_blocks == 0) == bool(got.impossible)
    assert bool(got.limited_by) != bool(got.impossible)


@given(launches, st.integers(0, 64), st.integers(0, 64 * KIB))
def test_asking_for_more_never_lets_more_blocks_in(
    launch: tuple[Capability, int, int, int], more_registers: int, more_shared: int
) -> None:
    cap, threads, registers, shared = launch
    before = occupancy(cap, threads, registers, shared).active_blocks
    assert occupancy(cap, threads, registers + more_registers, shared).active_blocks <= before
    assert occupancy(cap, threads, registers, shared + more_shared).active_blocks <= before


def header() -> Path | None:
    """The folder of the vendor's cuda_occupancy.h, from the compiler's wheel or a toolkit."""
    spec = importlib.util.find_spec("nvidia")
    roots = (
        [Path(root) for root in spec.submodule_search_locations]
        if spec and spec.submodule_search_locations
        else []
    )
    for folder in [*(p for root in roots for p in root.glob("*/include")), Path("/usr/local/cuda/include")]:
        if (folder / "cuda_occupancy.h").is_file():
            return folder
    return None


DRIVER = r"""
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
    int major, minor, warps, threads, registers;
    unsigned long per_sm, per_block, reserved, shared;
    while (scanf("%d %d %d %lu %lu %lu %d %d %lu", &major, &minor, &warps, &per_sm, &per_block, &reserved,
                 &threads, &registers, &shared) == 9) {
        cudaOccDeviceProp gpu;
        gpu.computeMajor = major;
        gpu.computeMinor = minor;
        gpu.maxThreadsPerBlock = 1024;
        gpu.maxThreadsPerMultiprocessor = 32 * warps;
        gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
        gpu.warpSize = 32;
        gpu.sharedMemPerBlock = 49152;
        gpu.sharedMemPerMultiprocessor = per_sm;
        gpu.numSms = 1;
        gpu.sharedMemPerBlockOptin = per_block;
        gpu.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = registers;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = shared;
        kernel.numBlockBarriers = 1;
        cudaOccDeviceState state;
        cudaOccResult result;
        int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, threads, shared);
        printf("%d\n", error ? -error : result.activeBlocksPerMultiprocessor);
    }
}
"""


@pytest.mark.skipif(header() is None or shutil.which("g++") is None, reason="needs cuda_occupancy.h and g++")
def test_occupancy_is_what_the_vendors_header_computes(tmp_path: Path) -> None:
    """The header takes the limits from a device; it gets ours, so that the rules alone are compared.

    The one difference left out: the header would let a kernel use 256 registers, which no compiler produces.
    """
    (tmp_path / "driver.cpp").write_text(DRIVER)
    subprocess.run(["g++", "-w", "-I", str(header()), "driver.cpp", "-o", "driver"], cwd=tmp_path, check=True)
    cases = [
        (cap, threads, registers, shared)
        for cap in hardware.TABLE.values()
        for threads in (1, 31, 32, 33, 64, 96, 128, 160, 192, 256, 288, 384, 512, 672, 768, 992, 1024, 1025)
        for registers in (0, 1, 16, 24, 32, 33, 40, 41, 48, 63, 64, 65, 80, 96, 128, 129, 168, 200, 255)
        for kib in (
            0,
            0.001,
            1,
            4,
            4.125,
            7.9,
            16,
            24.3,
            31,
            32,
            48,
            49,
            63,
            64,
            65,
            96,
            99,
            99.1,
            163,
            164,
            227,
            228,
        )
        for shared in (int(kib * KIB),)
    ]
    lines = [
        f"{c.major} {c.minor} {c.max_warps} {c.shared_per_sm} {c.shared_per_block_optin} {c.shared_reserved} "
        f"{t} {r} {s}"
        for c, t, r, s in cases
    ]
    printed = subprocess.run(
        [tmp_path / "driver"], input="\n".join(lines), text=True, capture_output=True, check=True
    )
    theirs = [int(line) for line in printed.stdout.split()]
    assert len(theirs) == len(cases)
    different = [
        (str(cap), *launch, ours, blocks)
        for (cap, *launch), blocks in zip(cases, theirs, strict=True)
        if (ours := occupancy(cap, *launch).active_blocks) != blocks
    ]
    assert not different, f"{len(different)} of {len(cases)} differ, the first: {different[:3]}"
