"""Wavefronts of shared memory, each number derived by hand in the test's docstring.

There are 32 banks of 4 bytes: word w lies in bank w mod 32. One pass serves one word of every bank, to as
many lanes as want it; 8-byte accesses go in two halves of a warp, 16-byte ones in four quarters.
"""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cuda
from tests.simt.engines import each_engine as each_engine
from tests.simt.launching import kernel

from .counting import at, counts_of, only, snippet_counts

PASSES = ("requests", "bytes", "wavefronts", "ideal_wavefronts")
TILE = ".shared .align 16 .b8 tile[32768];"


def shared(
    place: str, opcode: str = "st.shared.u32 [%rd2], %tid;", size: int = 4, block: int = 64
) -> tuple[int, ...]:
    """PASSES of an access to element %r1 of a tile, where `place` sets %r1 from the lane in %r2."""
    body = f"""
        mov.u64 %rd1, tile; and.b32 %r2, %tid, 31;
        {place}
        mad.wide.u32 %rd2, %r1, {size}, %rd1;
        {opcode}
    """
    counts = snippet_counts(kernel(body, outside=TILE), {"out": np.zeros(1, "i4")}, 1, block)
    return only(at(counts, ".shared"), *PASSES)


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 34, 40, 48, 64, 96])
def test_a_stride_falls_into_as_many_words_a_bank_as_it_shares_factors_with_32(stride):
    """Lane l touches word stride · l, so bank stride · l mod 32. With g = gcd(stride, 32) only 32 / g banks
    are hit, by g lanes each with different words: g passes. 2 requests of 128 bytes, 1 pass each without
    conflicts."""
    ways = int(np.gcd(stride, 32))
    place = f"mul.lo.u32 %r1, %r2, {stride};"
    assert shared(place) == (2, 256, 2 * ways, 2)
    assert shared(place, "ld.shared.u32 %r3, [%rd2];") == (2, 256, 2 * ways, 2)


@pytest.mark.parametrize("ways", [2, 4, 8, 16, 32])
def test_lanes_with_different_words_of_one_bank_wait_for_each_other(ways):
    """Lane l touches word 32 · (l mod ways) + l / ways: `ways` words in each of 32 / ways banks."""
    place = f"rem.u32 %r3, %r2, {ways}; div.u32 %r4, %r2, {ways}; mad.lo.u32 %r1, %r3, 32, %r4;"
    assert shared(place) == (2, 256, 2 * ways, 2)


def test_one_word_for_all_is_one_pass():
    """A broadcast, though all lanes want the same bank."""
    assert shared("mov.u32 %r1, 77;", "ld.shared.u32 %r3, [%rd2];") == (2, 256, 2, 2)


def test_lanes_that_share_words_of_a_bank_count_each_word_once():
    """Lane l reads word 32 · (l mod 4): four words of bank 0, each by 8 lanes: 4 passes."""
    assert shared("and.b32 %r3, %r2, 3; shl.b32 %r1, %r3, 5;", "ld.shared.u32 %r3, [%rd2];") == (2, 256, 8, 2)


def test_the_bank_with_the_most_words_decides():
    """Lanes 0 to 4 read words 0, 32, 64, 96, 128 of bank 0, the others word l of bank l: 5 passes."""
    place = "setp.lt.u32 %p1, %r2, 5; shl.b32 %r3, %r2, 5; selp.b32 %r1, %r3, %r2, %p1;"
    assert shared(place, "ld.shared.u32 %r3, [%rd2];") == (2, 256, 10, 2)


def test_a_permutation_of_the_banks_is_free():
    """Lane l touches word l xor 21."""
    assert shared("xor.b32 %r1, %r2, 21;") == (2, 256, 2, 2)


def test_bytes_of_one_word_are_served_together():
    """32 neighbouring bytes are 8 words: 1 pass. 32 bytes 128 apart are 32 words of bank 0: 32 passes."""
    assert shared("mov.u32 %r1, %r2;", "ld.shared.u8 %h1, [%rd2];", size=1) == (2, 64, 2, 2)
    assert shared("shl.b32 %r1, %r2, 7;", "ld.shared.u8 %h1, [%rd2];", size=1) == (2, 64, 64, 2)


@pytest.mark.parametrize(("stride", "passes"), [(0, 2), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (3, 2)])
def test_eight_byte_accesses_go_in_two_halves(stride, passes):
    """16 lanes at a time, 2 words each. At stride s lane l touches words 2 s l and 2 s l + 1.

    Stride 1: the 32 words of a half lie in 32 banks, 1 pass a half, 2 in all, and that is the least. Stride
    2: lanes l and l + 8 meet, 2 passes a half; stride 16: all 16 lanes meet. Stride 3: 6 l mod 32 is
    different for all 16 lanes. Stride 0: one word pair for all, 1 pass a half.
    """
    place = f"mul.lo.u32 %r1, %r2, {stride};"
    assert shared(place, "ld.shared.u64 %rd3, [%rd2];", size=8) == (2, 512, 2 * passes, 4)


@pytest.mark.parametrize(("stride", "passes"), [(0, 4), (1, 4), (2, 8), (4, 16), (8, 32)])
def test_sixteen_byte_accesses_go_in_four_quarters(stride, passes):
    """8 lanes at a time, 4 words each. Stride 1: 32 words in 32 banks, 1 pass a quarter, 4 in all.

    Stride 2: lanes l and l + 4 of a quarter meet, 2 passes a quarter; stride 8: all 8 lanes meet.
    """
    place = f"mul.lo.u32 %r1, %r2, {stride};"
    opcode = "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%rd2];"
    assert shared(place, opcode, size=16) == (2, 1024, 2 * passes, 8)


def test_a_partial_warp_needs_no_pass_for_lanes_that_are_not_there():
    """40 threads: a warp of 32 and one of 8 lanes. 8-byte accesses: 2 halves and 1 half."""
    place = "mov.u32 %r1, %tid;"
    assert shared(place, block=40) == (2, 160, 2, 2)
    assert shared(place, "ld.shared.u64 %rd3, [%rd2];", size=8, block=40) == (2, 320, 3, 3)


@pytest.mark.parametrize(("spread", "conflicts"), [(1, 31), (4, 28), (32, 0)])
def test_atomics_in_shared_memory_conflict_as_in_global_memory(spread, conflicts):
    """Lane l adds to word l mod spread: one pass by banks, and 32 − spread lanes beyond the first of their
    word."""
    body = f"""
        mov.u64 %rd1, tile; and.b32 %r2, %tid, {spread - 1};
        mad.wide.u32 %rd2, %r2, 4, %rd1;
        atom.shared.add.u32 %r3, [%rd2], 1;
    """
    counts = snippet_counts(kernel(body, outside=TILE), {"out": np.zeros(1, "i4")}, 1, 64)
    found = at(counts, kind="atomic", space="shared")
    assert only(found, *PASSES, "conflicts") == (2, 256, 2, 2, 2 * conflicts)


# ---- kernels -------------------------------------------------------------------------------------

DIM = 32


@cuda.jit
def transpose_naive(a, out):
    x, y = cuda.grid(2)
    out[x, y] = a[y, x]


@cuda.jit
def transpose_tiled(a, out):
    tile = cuda.shared.array((DIM, DIM), np.float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * DIM + cuda.threadIdx.x
    y = cuda.blockIdx.x * DIM + cuda.threadIdx.y
    out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


WIDE = DIM + 1


@cuda.jit
def transpose_padded(a, out):
    tile = cuda.shared.array((DIM, WIDE), np.float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * DIM + cuda.threadIdx.x
    y = cuda.blockIdx.x * DIM + cuda.threadIdx.y
    out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@pytest.mark.parametrize(
    ("transpose", "stored", "passes"),
    [(transpose_naive, 32, None), (transpose_tiled, 4, 32), (transpose_padded, 4, 1)],
    ids=["naive", "tiled", "padded"],
)
def test_transposes_of_three_kinds(transpose, stored, passes):
    """64 × 96 floats in blocks of 32 × 32: 6 blocks, 192 warps, a row of a block each.

    All load side by side, 4 sectors. The naive one stores down a column, 32 sectors. The tile is written by
    rows, 1 pass; read down a column of 32 words a row, all 32 lanes meet in one bank; at 33 words a row none
    do.
    """
    a = np.random.default_rng(0).random((96, 64), np.float32)
    out = np.zeros((64, 96), np.float32)
    counts = counts_of(transpose[(2, 3), (32, 32)], a, out)
    np.testing.assert_array_equal(out, a.T)
    assert at(counts, kind="load", space="global")["sectors"] == 192 * 4
    assert at(counts, kind="store", space="global")["sectors"] == 192 * stored
    if passes:
        assert only(at(counts, kind="store", space="shared"), *PASSES) == (192, 24576, 192, 192)
        assert only(at(counts, kind="load", space="shared"), *PASSES) == (192, 24576, 192 * passes, 192)
        assert at(counts, kind="barrier")["warps"] == 192


@cuda.jit
def three_point(x, out):
    tile = cuda.shared.array(66, np.float32)
    i = cuda.grid(1) + 1
    t = cuda.threadIdx.x + 1
    tile[t] = x[i]
    if t == 1:
        tile[0] = x[i - 1]
    if t == 64:
        tile[65] = x[i + 1]
    cuda.syncthreads()
    out[i] = tile[t - 1] + tile[t] + tile[t + 1]


def test_a_stencil_loads_its_halo_with_requests_of_one_lane():
    """4 blocks of 64 threads over 258 floats: 2 warps and 2 halo lanes each.

    Global loads: 8 requests side by side but 4 bytes off a sector, 5 sectors; 8 requests of one lane, 1
    sector. That is 16 requests, 4 · 66 · 4 = 1056 bytes, 48 sectors; side by side 8 · 4 + 8. Shared stores:
    16 requests. Shared loads: 3 · 8, without conflicts.
    """
    counts = counts_of(three_point[4, 64], np.ones(258, np.float32), np.zeros(258, np.float32))
    loads = at(counts, kind="load", space="global")
    assert only(loads, "requests", "bytes", "sectors", "ideal_sectors") == (16, 1056, 48, 40)
    assert only(at(counts, kind="store", space="shared"), *PASSES) == (16, 1056, 16, 16)
    assert only(at(counts, kind="load", space="shared"), *PASSES) == (24, 3072, 24, 24)


@cuda.jit
def block_sum(x, out):
    tile = cuda.shared.array(128, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            tile[t] += tile[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = tile[0]


def test_a_ladder_of_sums_halves_its_lanes_at_each_barrier():
    """2 blocks of 128 threads, 4 warps. Rungs of 64, 32, 16, 8, 4, 2, 1 lanes: 127 sums by 2 + 6 · 1 = 8
    warps a block.

    Each sum loads two words and stores one: 16 load requests and 8 store requests a block, without conflicts,
    besides the 4 stores of the tile and the last load of one lane. 8 barriers, passed by 4 warps each.
    """
    x, out = np.ones(256, np.float32), np.zeros(2, np.float32)
    counts = counts_of(block_sum[2, 128], x, out)
    assert out.tolist() == [128, 128]
    loads, stores = at(counts, kind="load", space="shared"), at(counts, kind="store", space="shared")
    assert only(loads, *PASSES) == (2 * 17, 2 * 4 * (2 * 127 + 1), 2 * 17, 2 * 17)
    assert only(stores, *PASSES) == (2 * 12, 2 * 4 * (127 + 128), 2 * 12, 2 * 12)
    barriers = at(counts, kind="barrier")
    assert only(barriers, "warps", "threads") == (2 * 8 * 4, 2 * 8 * 128)
    assert at(counts)["flops"] == 2 * 127


SIDE = 16


@cuda.jit
def matmul_naive(a, b, c):
    x, y = cuda.grid(2)
    s = np.float32(0)
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    c[y, x] = s


@cuda.jit
def matmul_tiled(a, b, c):
    ta = cuda.shared.array((SIDE, SIDE), np.float32)
    tb = cuda.shared.array((SIDE, SIDE), np.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    s = np.float32(0)
    for p in range(a.shape[1] // SIDE):
        ta[ty, tx] = a[y, p * SIDE + tx]
        tb[ty, tx] = b[p * SIDE + ty, x]
        cuda.syncthreads()
        for k in range(SIDE):
            s += ta[ty, k] * tb[k, tx]
        cuda.syncthreads()
    c[y, x] = s


def test_a_matrix_product_without_tiles():
    """32 × 32 in blocks of 16 × 16: 4 blocks, 32 warps of two rows of 16 columns, 32 steps each.

    A step loads one float of a for each of the two rows (128 bytes apart: 2 sectors, side by side 1) and 16
    floats of b that both rows share (64 bytes: 2 sectors). 32 · 32 steps of 2 requests and 4 sectors. An fma
    is 2 operations.
    """
    a = np.random.default_rng(0).random((32, 32), np.float32)
    c = np.zeros_like(a)
    counts = counts_of(matmul_naive[(2, 2), (16, 16)], a, a, c)
    np.testing.assert_allclose(c, a @ a, rtol=1e-5)
    found = at(counts, kind="load", space="global")
    assert only(found, "requests", "sectors", "ideal_sectors") == (2048, 4096, 3072)
    assert found["bytes"] == 2 * 4 * 32**3
    assert at(counts)["flops"] == 2 * 32**3


def test_a_matrix_product_with_tiles():
    """As above; each of the 2 panels is loaded once: 32 warps · 2 panels · 2 tiles = 128 requests.

    A warp loads 2 rows of 16 floats, 2 · 2 sectors. It stores them to the tile as 32 neighbouring words, 1
    pass. In each of 16 steps it reads 2 words of ta, in two banks, and 16 of tb, in 16: 1 pass each, 32 · 2 ·
    16 · 2 requests. 2 barriers a panel.
    """
    a = np.random.default_rng(0).random((32, 32), np.float32)
    c = np.zeros_like(a)
    counts = counts_of(matmul_tiled[(2, 2), (16, 16)], a, a, c)
    np.testing.assert_allclose(c, a @ a, rtol=1e-5)
    loads = at(counts, kind="load", space="global")
    assert only(loads, "requests", "bytes", "sectors", "ideal_sectors") == (128, 128 * 128, 512, 512)
    assert only(at(counts, kind="store", space="shared"), *PASSES) == (128, 128 * 128, 128, 128)
    reads = at(counts, kind="load", space="shared")
    assert reads["bytes"] == 2 * 4 * 32**3
    assert reads["wavefronts"] == reads["ideal_wavefronts"]
    assert at(counts, kind="barrier")["warps"] == 32 * 2 * 2
    assert at(counts)["flops"] == 2 * 32**3


@pytest.mark.parametrize("moves", [False, True])
def test_every_round_of_a_loop_counts(moves):
    """10 rounds of 2 warps, with a stride of 2 words: 20 requests of 128 bytes in two passes each; whether
    the address stays as it is or moves on by a row. Then one warp alone goes 5 rounds with the same load."""
    body = f"""
        mov.u64 %rd1, tile; and.b32 %r2, %tid, 31; mov.u32 %r4, 0;
        mad.wide.u32 %rd2, %r2, 8, %rd1;
        setp.lt.u32 %p2, %tid, 32; selp.b32 %r6, 15, 10, %p2;
        again:
        ld.shared.u32 %r3, [%rd2+4];
        {"add.u64 %rd2, %rd2, 256;" if moves else ""}
        add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r6; @%p1 bra again;
    """
    counts = snippet_counts(kernel(body, outside=TILE), {"out": np.zeros(1, "i4")}, 3, 64)
    assert only(at(counts, ".shared"), *PASSES) == (3 * 25, 3 * 25 * 128, 3 * 50, 3 * 25)
