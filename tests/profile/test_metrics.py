"""Metrics from counts written by hand; each derivation stands beside its number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpulab import cuda
from gpulab import cupy as cp
from gpulab.analysis.profile import METRICS, UnknownMetric, profile
from gpulab.analysis.profile.metrics import combine, find_metric
from gpulab.analysis.profile.report import Metrics
from gpulab.analysis.profile.tally import Key, Tally
from tests.profile.by_hand import TRANSPOSE, counts, launch, report

# Two requests to shared memory without conflict, two that are 32-way: 2 + 64 wavefronts where 4 would do.
SHARED = (
    (
        "st.shared.f32",
        3,
        "store",
        "shared",
        {"warps": 2, "requests": 2, "bytes": 256, "wavefronts": 2, "ideal_wavefronts": 2},
    ),
    (
        "ld.shared.f32",
        5,
        "load",
        "shared",
        {"warps": 2, "requests": 2, "bytes": 256, "wavefronts": 64, "ideal_wavefronts": 2},
    ),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("instructions", 5 * 384),
        ("thread_instructions", 5 * 12288),
        ("guarded_thread_instructions", 4 * 12288),
        ("lanes_active", 32),  # 12,288 lanes in 384 warps
        ("global_load_requests", 384),
        ("global_load_sectors", 384 * 4),
        ("global_load_sectors_per_request", 4),
        ("global_store_sectors_per_request", 32),
        ("global_store_excess", 8),  # 32 instead of 4
        ("global_sectors", 384 * 36),
        ("global_sectors_per_request", 18),  # (4 + 32) / 2
        ("global_bytes", 2 * 96 * 128 * 4),
        ("global_sector_bytes", 384 * 36 * 32),
        ("branches", 384),  # the jump at the end has no condition and is none
        ("branch_efficiency", 100),
        ("divergent_branches", 0),
        ("flops", 0),
        ("special_functions", 0),
        ("arithmetic_intensity", 0),
        ("shared_wavefronts", 0),
        ("bank_conflict_ways", None),  # nothing to divide by
        ("local_load_sectors_per_request", None),
        ("launches", 1),
        ("blocks", 12),
        ("warps", 12 * 32),
        ("threads", 12 * 1024),
        ("registers", 16),
        ("occupancy", 100),
    ],
)
def test_the_transpose_has_these_metrics(name: str, value: float | None) -> None:
    assert report()[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shared_wavefronts", 66),
        ("shared_wavefronts_ideal", 4),
        ("bank_conflict_ways", 16.5),
        ("bank_conflicts", 62),
        ("shared_load_bank_conflict_ways", 32),
        ("shared_store_bank_conflict_ways", 1),
        ("shared_requests", 4),
    ],
)
def test_shared_memory_has_these_metrics(name: str, value: float) -> None:
    assert report(launch(SHARED))[name] == value


def test_metrics_of_several_launches_are_those_of_the_sums_and_not_means() -> None:
    """3 transposes and one with 4 sectors a store: (3 · 12,288 + 1,536) / (4 · 384) = 25."""
    coalesced = tuple(
        (*row[:4], row[4] | {"sectors": 1536}) if row[0].startswith("st") else row for row in TRANSPOSE
    )
    several = report(*[launch()] * 3, launch(coalesced))
    assert several["global_store_sectors_per_request"] == 25
    assert several["launches"] == 4
    assert several["registers"] == 16


def test_bytes_that_a_block_loads_add_up_over_launches_that_follow_one_another() -> None:
    """Blocks that load 32 · 32 floats each; then one block that loads all, in the next launch."""
    assert report()["block_load_bytes"] == 32 * 32 * 4
    both = report(launch(), replace(launch(), grid=(1, 1, 1), most_loaded=96 * 128 * 4))
    assert both["block_load_bytes"] == (32 * 32 + 96 * 128) * 4


def test_the_busiest_block_hands_over_as_often_however_many_blocks_are_idle() -> None:
    """8 warps at 3 barriers, and one of them at an atomic."""

    @cuda.jit
    def meet(out):
        if cuda.blockIdx.x == 0:
            for _ in range(3):
                cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                cuda.atomic.add(out, 0, 1)

    for blocks in (1, 50):
        assert profile(meet[blocks, 256], np.zeros(1, np.int32))["block_hand_overs"] == 8 * 3 + 1
    assert report(*[replace(launch(), most_handed=9)] * 2)["block_hand_overs"] == 18


def test_blocks_that_load_nothing_make_the_busiest_one_no_less_busy() -> None:
    @cuda.jit
    def copy_in_one_block(a, out):
        if cuda.blockIdx.x == 0:
            for i in range(cuda.threadIdx.x, a.size, 32):
                out[i] = a[i]

    a = np.ones(96, np.float32)
    for blocks in (1, 50):
        seen = profile(copy_in_one_block[blocks, 32], a, np.zeros_like(a))
        assert seen["block_load_bytes"] == 96 * 4


def test_a_fact_that_one_launch_lacks_has_no_value() -> None:
    from dataclasses import replace

    assert report(launch(), replace(launch(), registers=None))["registers"] is None


def test_arithmetic_intensity_is_flops_over_requested_bytes() -> None:
    """An fma for each of 32 lanes that loads 4 bytes: 64 FLOP / 128 B."""
    rows = (
        ("ld.global.f32", 1, "load", "global", {"requests": 1, "bytes": 128, "sectors": 4}),
        ("fma.rn.f32", 1, "arithmetic", "", {"flops": 64}),
    )
    assert report(launch(rows))["arithmetic_intensity"] == 0.5


def test_the_table_of_metrics_shows_a_line_for_each() -> None:
    lines = repr(METRICS).splitlines()
    assert [line.split()[0] for line in lines] == ["metric", *METRICS]
    assert all(METRICS[line.split()[0]].meaning in line for line in lines[1:])


def test_an_unknown_metric_is_answered_with_the_closest() -> None:
    with pytest.raises(UnknownMetric, match=r"there is no metric 'sectors_per_requests'; did you mean"):
        find_metric("sectors_per_requests")
    with pytest.raises(UnknownMetric, match="METRICS lists them all"):
        report()["???"]


def test_every_metric_has_a_unit_a_meaning_and_one_way_to_work_it_out() -> None:
    for metric in METRICS.values():
        assert metric.unit, metric.name
        assert metric.meaning and metric.meaning[-1] != ".", metric.name
        assert [bool(metric.terms), bool(metric.ratio), bool(metric.fact)].count(True) == 1, metric.name
        assert metric.cause is None or metric.cause.terms


def test_tallies_add_up_and_survive_a_list() -> None:
    one = Tally.of(counts(TRANSPOSE))
    both = one + one
    assert both.total("sectors", "store", "global") == 2 * 12288
    assert one.total("sectors", "store", "global") == 12288
    assert Tally.from_list(both.to_list()) == both


def test_an_atomic_may_be_counted_as_a_load_and_a_store() -> None:
    atomic = {"warps": 2, "active": 64, "requests": 2, "sectors": 8, "bytes": 256}
    tally = Tally(
        {Key("", 1, "atomic", "global"): atomic, Key("", 2, "load", "global"): {"warps": 1, "sectors": 4}}
    )
    found = Metrics(tally.with_atomics_as_accesses(), {})
    assert (found["global_load_sectors"], found["global_store_sectors"]) == (12, 8)
    assert (found["hand_overs"], found["instructions"]) == (2, 3)


def test_a_shuffle_may_be_counted_as_a_load_from_shared_memory() -> None:
    shuffle, load = Key("", 1, "shuffle", ""), Key("", 2, "load", "shared")
    tally = Tally({shuffle: {"warps": 5, "active": 150}, load: {"warps": 1, "requests": 1, "bytes": 128}})
    found = Metrics(tally.with_shuffles_as_shared_loads(), {})
    assert (found["shared_load_requests"], found["shared_load_bytes"]) == (6, 128 + 4 * 150)
    assert (found["bank_conflicts"], found["warp_syncs"], found["instructions"]) == (0, 5, 6)
    assert Metrics(tally, {})["shared_load_bytes"] == 128


def test_a_barrier_of_a_cluster_may_be_counted_as_one_of_its_blocks() -> None:
    of_cluster, of_block = Key("", 1, "cluster_barrier", ""), Key("", 2, "barrier", "")
    tally = Tally({of_cluster: {"warps": 6}, of_block: {"warps": 4}})
    assert Metrics(tally, {})["barriers"] == 4
    found = Metrics(tally.with_cluster_barriers_as_barriers(), {})
    assert (found["barriers"], found["instructions"]) == (10, 10)


def test_requests_to_memory_are_those_of_every_memory() -> None:
    spaces = ("global", "local", "shared", "const")
    rows = {Key("", i, "load", space): {"warps": 1, "requests": 1} for i, space in enumerate(spaces)}
    rows[Key("", 9, "store", "global")] = rows[Key("", 10, "atomic", "shared")] = {"warps": 2, "requests": 2}
    assert Metrics(Tally(rows), {})["memory_requests"] == 8


WAITING = """
extern "C" __global__ void wait(int* out) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ int flag;
    unsigned place = (unsigned)__cvta_generic_to_shared(&bar);
    unsigned long long state;
    int seen;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(place));
    flag = 1;
    __syncthreads();
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(place));
    asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(seen) : "r"((unsigned)__cvta_generic_to_shared(&flag)));
    out[threadIdx.x] = seen + flag;
}
"""


def test_a_warp_is_handed_something_by_a_barrier_an_mbarrier_and_a_strong_load() -> None:
    """Of 2 warps one initialises; both pass the barrier, arrive and acquire. What is loaded plainly is none."""
    seen = profile(cp.RawKernel(WAITING, "wait"), (1,), (64,), (cp.zeros(64, cp.int32),))
    assert seen["barriers"] == 2
    assert seen["hand_overs"] == 1 + 2 + 2 + 2


def test_an_atomic_addition_of_floats_is_an_operation_on_floats() -> None:
    @cuda.jit
    def add_up(a, whole, out, count):
        i = cuda.grid(1)
        cuda.atomic.add(out, 0, a[i])
        cuda.atomic.add(count, 0, whole[i])

    a, whole = np.ones(64, np.float32), np.ones(64, np.int32)
    seen = profile(add_up[2, 32], a, whole, np.zeros(1, np.float32), np.zeros(1, np.int32))
    assert seen["flops"] == 64
    assert seen["hand_overs"] == 4
    assert seen["block_hand_overs"] == 2


def test_lanes_that_take_turns_at_an_address_pass_as_often_as_those_that_meet_there() -> None:
    @cuda.jit
    def count(out, turns):
        s = cuda.shared.array(1, np.int32)
        for lane in range(32):
            if cuda.laneid == lane or not turns:
                cuda.atomic.add(s, 0, 1)
            if not turns:
                break
        out[0] = s[0]

    out = np.zeros(1, np.int32)
    for turns in (True, False):
        assert profile(count[1, 32], out, turns)["shared_atomic_passes"] == 32


def test_instructions_without_a_source_line_stand_under_line_zero() -> None:
    tally = Tally.of(counts((("ret", 0, "other", "", {"warps": 3}),)))
    assert list(tally.by_place()) == [("", 0)]


@pytest.mark.parametrize(
    ("name", "expected"), [("launches", 10), ("block_load_bytes", 10), ("registers", 7), ("occupancy", 3)]
)
def test_a_fact_of_several_launches_is_their_sum_or_the_worst(name, expected):
    assert combine(name, [3, 7]) == combine(name, [7, 3]) == expected
    assert combine(name, [3, None]) is None
