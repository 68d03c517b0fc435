"""Requests, sectors and bytes in global and local memory, each number derived by hand in the test's
docstring.

A sector is 32 bytes, so 8 floats; a warp that reads 32 neighbouring floats needs 4. Arrays start at a
multiple of a sector.
"""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cuda
from tests.simt.engines import each_engine as each_engine
from tests.simt.launching import element, kernel

from .counting import at, counts_of, only, snippet_counts

TRAFFIC = ("requests", "bytes", "sectors", "ideal_sectors")


@cuda.jit
def read_at(x, out, stride, offset):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * stride + offset]


def strided(stride: int, offset: int, n: int = 128, dtype: str = "f4") -> tuple[dict, dict]:
    """What the loads and the stores of `read_at` count, in blocks of 64 threads."""
    x, out = np.ones(n * max(stride, 1) + offset, dtype), np.zeros(n, dtype)
    counts = counts_of(read_at[-(-n // 64), 64], x, out, stride, offset)
    return at(counts, kind="load", space="global"), at(counts, kind="store", space="global")


@pytest.mark.parametrize(
    ("stride", "sectors"), [(1, 4), (2, 8), (3, 12), (4, 16), (8, 32), (16, 32), (32, 32)]
)
def test_a_stride_spreads_a_request_over_more_sectors(stride, sectors):
    """128 threads are 4 warps, so 4 requests of 32 · 4 = 128 bytes.

    The lanes of a warp lie `stride` floats apart and reach over 128 · stride bytes. Up to stride 8 that is a
    sector for every 32 bytes of them, 4 · stride; from stride 8 on each lane has a sector of its own, 32.
    (Stride 3: 31 · 12 + 4 = 376 bytes from a sector's start are 12 sectors, none of them left out.) Side by
    side it would be 4. The stores are side by side in every case.
    """
    loads, stores = strided(stride, 0)
    assert only(loads, *TRAFFIC) == (4, 512, 4 * sectors, 16)
    assert only(stores, *TRAFFIC) == (4, 512, 16, 16)


@pytest.mark.parametrize(("offset", "sectors"), [(0, 4), (1, 5), (7, 5), (8, 4), (31, 5), (32, 4)])
def test_a_misaligned_start_touches_a_fifth_sector(offset, sectors):
    """A warp's 128 bytes start 4 · offset bytes into a sector: unless that is a multiple of 32 they end in a
    fifth."""
    loads, _ = strided(1, offset)
    assert only(loads, *TRAFFIC) == (4, 512, 4 * sectors, 16)


def test_one_address_for_all_lanes_is_one_sector():
    """Stride 0: each of 4 requests touches 4 bytes, in one sector, and side by side it is one, too.

    The lanes ask for 128 bytes a warp all the same.
    """
    loads, _ = strided(0, 5)
    assert only(loads, *TRAFFIC) == (4, 512, 4, 4)


@pytest.mark.parametrize(("dtype", "size"), [("i1", 1), ("i2", 2), ("f4", 4), ("f8", 8)])
def test_the_size_of_an_element_sets_the_sectors(dtype, size):
    """32 neighbouring elements of 1, 2, 4, 8 bytes are 32, 64, 128, 256 bytes: 1, 2, 4, 8 sectors a warp."""
    loads, stores = strided(1, 0, dtype=dtype)
    for found in (loads, stores):
        assert only(found, *TRAFFIC) == (4, 128 * size, 4 * size, 4 * size)


def test_a_partial_last_warp_asks_for_less():
    """70 elements in 2 blocks of 64: warps of 32, 32, 6 and 0 lanes inside the guard.

    3 requests for 70 · 4 = 280 bytes; 4 + 4 sectors, and 6 floats are 24 bytes in 1: 9.
    """
    loads, stores = strided(1, 0, n=70)
    for found in (loads, stores):
        assert only(found, *TRAFFIC) == (3, 280, 9, 9)


@cuda.jit
def double(x):
    i = cuda.grid(1)
    x[i] = 2 * x[i]


def test_a_block_that_is_no_multiple_of_a_warp_wastes_lanes_not_bytes():
    """3 blocks of 40 threads: each has a warp of 32 and one of 8 lanes. 6 requests, 120 · 4 bytes.

    Block b begins at byte 160 · b, a multiple of 32: 4 sectors for its first warp, 1 for the 32 bytes of the
    other.
    """
    counts = counts_of(double[3, 40], np.ones(120, np.float32))
    for kind in ("load", "store"):
        assert only(at(counts, kind=kind, space="global"), *TRAFFIC) == (6, 480, 15, 15)


@cuda.jit
def gather(index, x, out):
    i = cuda.grid(1)
    out[i] = x[index[i]]


def gathered(index: np.ndarray) -> tuple[int, ...]:
    """TRAFFIC of the loads of x alone: those of `index` are 2 warps side by side."""
    n = len(index)
    counts = counts_of(
        gather[n // 64, 64], index.astype(np.int32), np.ones(4096, np.float32), np.zeros(n, "f4")
    )
    loads = at(counts, kind="load", space="global")
    warps = n // 32
    own = {"requests": warps, "bytes": 4 * n, "sectors": 4 * warps, "ideal_sectors": 4 * warps}
    return tuple(loads[column] - own[column] for column in TRAFFIC)


LANE = np.arange(64) % 32
WARP = np.arange(64) // 32


def test_a_permutation_within_a_warp_costs_nothing():
    """The 32 lanes read the same 32 floats as side by side, in another order: 4 sectors each of 2
    requests."""
    order = np.random.default_rng(0).permutation(32)
    assert gathered(WARP * 32 + order[LANE]) == (2, 256, 8, 8)


def test_reading_backwards_costs_nothing():
    """Lane l reads float 31 − l of the warp's 128 bytes."""
    assert gathered(63 - np.arange(64)) == (2, 256, 8, 8)


def test_duplicates_are_asked_for_once():
    """Groups of 4 lanes share a float: 8 distinct neighbours, 32 bytes, 1 sector; 128 bytes are asked for."""
    assert gathered(WARP * 8 + LANE // 4) == (2, 256, 2, 2)


def test_scattered_duplicates_are_a_sector_each():
    """8 distinct floats 256 bytes apart: 8 sectors; side by side those 32 bytes would be 1."""
    assert gathered(WARP * 512 + LANE % 8 * 64) == (2, 256, 16, 2)


def test_two_halves_of_a_sector_count_once():
    """Lanes 2k and 2k + 1 read the first and the last float of sector 3k: 16 sectors; 32 floats fit in 4."""
    assert gathered(WARP * 1024 + LANE // 2 * 24 + LANE % 2 * 7) == (2, 256, 32, 8)


@pytest.mark.parametrize(("vector", "size"), [("v2.f32", 8), ("v4.f32", 16), ("v2.f64", 16), ("v4.u8", 4)])
def test_a_vector_access_is_one_request_of_all_its_bytes(vector, size):
    """64 threads are 2 warps: 2 requests of 32 · size bytes, size sectors each."""
    count = int(vector[1])
    register = {"f32": "%f", "f64": "%fd", "u8": "%h"}[vector.partition(".")[2]]
    items = "{" + ", ".join(f"{register}{i}" for i in range(count)) + "}"
    body = f"""
        {element("x", size=size, into="%rd1")} {element("out", size=size, into="%rd2")}
        ld.global.{vector} {items}, [%rd1];
        st.global.{vector} [%rd2], {items};
    """
    arrays = {"x": np.zeros(64 * size, np.uint8), "out": np.zeros(64 * size, np.uint8)}
    counts = snippet_counts(kernel(body, "x out"), arrays, 1, 64)
    for kind in ("load", "store"):
        assert only(at(counts, kind=kind, space="global"), *TRAFFIC) == (2, 64 * size, 2 * size, 2 * size)


@cuda.jit
def two_arms(x, y, out):
    i = cuda.grid(1)
    if i % 2 == 0:
        out[i] = x[i]
    else:
        out[i] = y[i] + 1


def test_both_arms_of_a_divergent_branch_ask_on_their_own():
    """64 threads, 2 warps. The even lanes load from x, the odd ones from y: 2 requests in each arm, of 16
    lanes.

    16 floats 8 bytes apart touch 16 · 8 / 32 = 4 sectors; side by side their 64 bytes would be 2. Loads: two
    arms of 2 requests, 4 · 4 = 16 sectors, 4 · 2 = 8 ideal, 4 · 64 bytes. The stores meet or not as the
    compiler likes.
    """
    counts = counts_of(two_arms[1, 64], np.ones(64, "f4"), np.ones(64, "f4"), np.zeros(64, "f4"))
    assert only(at(counts, kind="load", space="global"), *TRAFFIC) == (4, 256, 16, 8)


@cuda.jit
def copy_2d(a, out):
    x, y = cuda.grid(2)
    out[y, x] = a[y, x]


@cuda.jit
def copy_2d_swapped(a, out):
    x, y = cuda.grid(2)
    out[x, y] = a[x, y]


@pytest.mark.parametrize(
    ("block", "along", "across"), [((32, 8), 4, 32), ((16, 16), 4, 16), ((8, 8), 4, 8), ((64, 2), 4, 32)]
)
def test_the_shape_of_a_block_decides_what_a_warp_reads(block, along, across):
    """A matrix of 64 × 64 floats, rows of 256 bytes; x runs along a row or (swapped) down a column.

    A warp is 32 / w rows of the block, w = min(32, width). Along the row it reads 32 / w pieces of 4 w bytes:
    32 / w · w / 8 = 4 sectors whatever w is. Swapped, it reads w rows with 32 / w neighbouring floats in
    each, which start at a multiple of them: w sectors. 4096 threads are 128 warps.
    """
    a, grid = np.ones((64, 64), np.float32), (64 // block[0], 64 // block[1])
    for copy, sectors in ((copy_2d, along), (copy_2d_swapped, across)):
        counts = counts_of(copy[grid, block], a, np.zeros_like(a))
        for kind in ("load", "store"):
            found = at(counts, kind=kind, space="global")
            assert only(found, *TRAFFIC) == (128, 4 * 4096, 128 * sectors, 512)


@cuda.jit
def sum_fields(records, out):
    i = cuda.grid(1)
    out[i] = records[i, 0] + records[i, 2]


@cuda.jit
def sum_rows(fields, out):
    i = cuda.grid(1)
    out[i] = fields[0, i] + fields[2, i]


def test_an_array_of_structures_spreads_its_fields():
    """Records of 4 floats, 16 bytes: a warp's field lies in 32 · 16 / 32 = 16 sectors, side by side in 4.

    2 fields, 2 warps: 4 requests. As a structure of arrays each field is side by side.
    """
    together = counts_of(sum_fields[1, 64], np.ones((64, 4), np.float32), np.zeros(64, np.float32))
    apart = counts_of(sum_rows[1, 64], np.ones((4, 64), np.float32), np.zeros(64, np.float32))
    assert only(at(together, kind="load", space="global"), *TRAFFIC) == (4, 512, 64, 16)
    assert only(at(apart, kind="load", space="global"), *TRAFFIC) == (4, 512, 16, 16)


@cuda.jit
def add_up(x, out):
    start = cuda.grid(1)
    for i in range(start, x.size, cuda.gridsize(1)):
        out[i] = x[i] + 1


def test_a_grid_stride_loop_asks_for_each_element_once():
    """1024 elements by 128 threads: 8 rounds of 4 warps, 32 requests of 4 sectors."""
    counts = counts_of(add_up[2, 64], np.ones(1024, np.float32), np.zeros(1024, np.float32))
    for kind in ("load", "store"):
        assert only(at(counts, kind=kind, space="global"), *TRAFFIC) == (32, 4096, 128, 128)


def test_the_last_round_of_a_grid_stride_loop_is_for_a_part_of_the_grid():
    """1000 elements by 128 threads: 7 rounds of 4 warps and one of 104 = 3 · 32 + 8 lanes: 32 requests.

    1000 · 4 bytes side by side are 31 · 4 sectors and 1 for the last 8 floats, 125. In PTX, because a
    compiler that unrolls the loop sends the lanes with 7 rounds and those with 8 through it apart.
    """
    body = f"""
        mov.u32 %r1, %at;
    LOOP:
        {element("x", "%r1")}
        ld.global.u32 %r2, [%rd31];
        st.global.u32 [%rd31], %r1;
        add.u32 %r1, %r1, 128;
        setp.lt.u32 %p1, %r1, 1000;
        @%p1 bra LOOP;
    """
    counts = snippet_counts(kernel(body, "x"), {"x": np.zeros(1000, np.uint32)}, 2, 64)
    for kind in ("load", "store"):
        assert only(at(counts, kind=kind, space="global"), *TRAFFIC) == (32, 4000, 125, 125)


@cuda.jit
def blocked(x, out, each):
    start = cuda.grid(1) * each
    for i in range(start, min(start + each, x.size)):
        out[i] = x[i] + 1


def test_a_piece_for_each_thread_asks_for_as_much_in_more_sectors():
    """The same 1024 floats, 8 neighbours for each of 128 threads: in every round the 32 lanes lie 32 bytes
    apart.

    8 rounds · 4 warps = 32 requests of 32 sectors each.
    """
    counts = counts_of(blocked[2, 64], np.ones(1024, np.float32), np.zeros(1024, np.float32), 8)
    for kind in ("load", "store"):
        assert only(at(counts, kind=kind, space="global"), *TRAFFIC) == (32, 4096, 1024, 128)


# ---- atomics -------------------------------------------------------------------------------------


@cuda.jit
def count_at(index, bins):
    i = cuda.grid(1)
    cuda.atomic.add(bins, index[i], 1)


@pytest.mark.parametrize(
    ("spread", "sectors", "ideal", "conflicts"),
    [(1, 1, 1, 31), (2, 1, 1, 30), (8, 1, 1, 24), (32, 4, 4, 0)],
    ids=["one address", "two", "eight", "all apart"],
)
def test_atomics_conflict_where_lanes_share_an_address(spread, sectors, ideal, conflicts):
    """64 threads, 2 requests of 128 bytes; lane l adds to bin l mod spread. Bins are int32, side by side.

    `spread` distinct words lie in spread / 8 sectors, at least 1; every lane beyond the first at its word
    conflicts: 32 − spread a warp.
    """
    counts = counts_of(count_at[1, 64], (LANE % spread).astype(np.int32), np.zeros(32, np.int32))
    found = at(counts, kind="atomic", space="global")
    assert only(found, *TRAFFIC) == (2, 256, 2 * sectors, 2 * ideal)
    assert found["conflicts"] == 2 * conflicts


# ---- local and constant memory -------------------------------------------------------------------

OWN = ".local .align 16 .b8 own[64];"


def local(place: str) -> tuple[int, ...]:
    """TRAFFIC of a store by 2 warps to word %r1 of a local array, where `place` sets %r1."""
    body = f"mov.u64 %rd1, own; {place} mad.wide.u32 %rd2, %r1, 4, %rd1; st.local.u32 [%rd2], %tid;"
    counts = snippet_counts(kernel(body, declarations=OWN), {"out": np.zeros(1, "i4")}, 1, 64)
    return only(at(counts, kind="store", space="local"), *TRAFFIC)


def test_local_memory_with_one_index_for_all_lies_side_by_side():
    """The same word of 32 lanes is 128 neighbouring bytes: 4 sectors a request."""
    assert local("mov.u32 %r1, 3;") == (2, 256, 8, 8)


def test_local_memory_with_an_index_for_each_lane_is_scattered():
    """Lane l stores to word l mod 8. Word w of lanes 8 g … 8 g + 7 is a sector, and all 8 · 4 of them are
    touched."""
    assert local("and.b32 %r1, %tid, 7;") == (2, 256, 64, 8)


def test_local_memory_with_an_index_for_each_quarter_is_as_good_as_one():
    """Lanes 8 g … 8 g + 7 store to word g: one sector for each of the 4 quarters."""
    assert local("shr.u32 %r1, %tid, 3; and.b32 %r1, %r1, 3;") == (2, 256, 8, 8)


@cuda.jit
def private(x, out, n):
    i = cuda.grid(1)
    a = cuda.local.array(16, np.float32)
    for j in range(16):
        a[j] = x[i] * j
    out[i] = a[(n + i) % 16]


def test_a_local_array_of_a_kernel_counts_its_bytes():
    """64 threads read one of 16 floats each, by an index that differs from lane to lane: 2 requests, 256
    bytes.

    Lane l reads word (n + l) mod 16; the 8 lanes of a quarter read 8 different words: 32 sectors a warp.
    """
    counts = counts_of(private[1, 64], np.ones(64, np.float32), np.zeros(64, np.float32), 3)
    assert only(at(counts, kind="load", space="local"), *TRAFFIC) == (2, 256, 64, 8)


TABLE = np.arange(64, dtype=np.float32)


@cuda.jit
def from_constants(out, stride):
    i = cuda.grid(1)
    table = cuda.const.array_like(TABLE)
    out[i] = table[i % 32 * stride]


@pytest.mark.parametrize(("stride", "passes"), [(0, 1), (1, 32), (2, 32)])
def test_constant_memory_serves_one_word_at_a_time(stride, passes):
    """One word for all 32 lanes is one pass, 32 different words are 32. 2 requests."""
    counts = counts_of(from_constants[1, 64], np.zeros(64, np.float32), stride)
    found = at(counts, kind="load", space="const")
    assert only(found, "requests", "bytes", "wavefronts", "ideal_wavefronts") == (2, 256, 2 * passes, 2)


def test_an_asynchronous_copy_loads_from_global_and_stores_to_shared_memory():
    """Two warps copy 16 bytes a lane: 2 requests of 512 bytes, 16 sectors each, and 4 passes of the banks each.
    Nothing else in the body moves bytes, and the waits are no accesses."""
    body = f"""
        mov.u64 %rd1, tile;
        mad.wide.u32 %rd1, %tid, 16, %rd1;
        {element("x", "%tid", 16, "%rd2")}
        cp.async.cg.shared.global [%rd1], [%rd2], 16;
        cp.async.commit_group;
        cp.async.wait_all;
    """
    tile = ".shared .align 16 .b8 tile[1024];"
    counts = snippet_counts(kernel(body, "x", declarations=tile), {"x": np.zeros(256, "f4")}, 1, 64)
    assert only(at(counts, kind="load", space="global"), *TRAFFIC) == (2, 1024, 32, 32)
    stored = only(
        at(counts, kind="store", space="shared"), "requests", "bytes", "wavefronts", "ideal_wavefronts"
    )
    assert stored == (2, 1024, 8, 8)
    assert [k for k in counts.kinds if k[1] in ("global", "shared")] == [
        ("load", "global"),
        ("store", "shared"),
    ]


def test_a_wait_counts_what_arrived_and_what_is_still_on_its_way():
    """Two warps send three groups of 16 bytes a lane. The first wait leaves two of them behind, the second none,
    so that of 48 bytes a lane 16 were waited for with 32 on their way."""
    copy = "cp.async.cg.shared.global [%rd1], [%rd2], 16; cp.async.commit_group;"
    body = f"""
        mov.u64 %rd1, tile;
        mad.wide.u32 %rd1, %tid, 16, %rd1;
        {element("x", "%tid", 16, "%rd2")}
        {3 * copy}
        cp.async.wait_group 2;
        cp.async.wait_group 2;
        cp.async.wait_all;
    """
    tile = ".shared .align 16 .b8 tile[1024];"
    counts = snippet_counts(kernel(body, "x", declarations=tile), {"x": np.zeros(256, "f4")}, 1, 64)
    assert only(at(counts, kind="copy_wait", space=""), "bytes", "behind") == (64 * 48, 64 * 16 * 32)


def test_an_asynchronous_copy_to_a_column_of_a_tile_meets_bank_conflicts():
    """32 lanes copy neighbours to places 128 bytes apart: all in one bank."""
    body = f"""
        mov.u64 %rd1, tile;
        mad.wide.u32 %rd1, %tid, 128, %rd1;
        {element("x", "%tid", 4, "%rd2")}
        cp.async.ca.shared.global [%rd1], [%rd2], 4;
        cp.async.wait_all;
    """
    tile = ".shared .align 16 .b8 tile[4096];"
    counts = snippet_counts(kernel(body, "x", declarations=tile), {"x": np.zeros(32, "f4")}, 1, 32)
    assert only(at(counts, kind="store", space="shared"), "wavefronts", "ideal_wavefronts") == (32, 1)
