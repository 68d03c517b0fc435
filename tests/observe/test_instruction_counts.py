"""Warps, lanes, branches, barriers and floating-point operations, each number derived by hand in the
docstring."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cuda
from tests.simt.launching import element, kernel

from .counting import SCHEDULES, at, counts_of, only, snippet_counts

LANES = ("warps", "threads", "active")


def counted(body: str, grid: int = 1, block: int = 64, out: int = 1, **options):
    return snippet_counts(kernel(body), {"out": np.zeros(out, "i4")}, grid, block, **options)


def test_straight_code_counts_each_instruction_once_a_warp():
    """3 blocks of 2 warps: 6 warps, 192 lanes, for each of the two sums; a third one stands under no lane."""
    counts = counted("add.s32 %r1, %tid, 1; add.s32 %r2, %r1, 1; ret; add.s32 %r3, %r1, 1;", grid=3)
    assert only(at(counts, "add.s32"), *LANES) == (12, 384, 384)


def test_lanes_beyond_the_block_do_not_count():
    """2 blocks of 40 threads: 2 warps each, 32 + 8 lanes."""
    assert only(at(counted("sub.s32 %r1, %tid, 1;", 2, 40), "sub.s32"), *LANES) == (4, 80, 80)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_divergent_branch_runs_both_arms_with_some_lanes_each(schedule):
    """2 warps, lanes with tid mod 4 = 0 go to one arm: 8 lanes of each warp, 24 in the other.

    The branch splits both warps, so none is uniform. The code behind the arms runs once for all lanes.
    """
    body = """
        and.b32 %r1, %tid, 3;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra ARM;
        sub.s32 %r2, %tid, 1;
        bra END;
    ARM:
        mul.lo.s32 %r2, %tid, 5;
    END:
        xor.b32 %r2, %r2, 1;
    """
    counts = counted(body, schedule=schedule)
    assert only(at(counts, "sub.s32"), *LANES) == (2, 48, 48)
    assert only(at(counts, "mul.lo.s32"), *LANES) == (2, 16, 16)
    assert only(at(counts, "xor.b32"), *LANES) == (2, 64, 64)
    (split,) = [i for i, each in enumerate(counts.instructions) if each.opcode == "bra" and each.guard]
    assert [int(counts.table[c][split]) for c in ("warps", "threads", "uniform")] == [2, 64, 0]


def rows(counts, opcode: str) -> list[dict[str, int]]:
    """The counts of each instruction with this opcode."""
    chosen = [i for i, instruction in enumerate(counts.instructions) if instruction.opcode == opcode]
    return [{column: int(values[i]) for column, values in counts.table.items()} for i in chosen]


def test_a_branch_on_the_warp_is_uniform():
    """4 warps, the first two go one way: all four uniform. On the block: uniform, too. On the lane: none."""
    on_warp = counted(
        "shr.u32 %r1, %tid, 6; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; add.s32 %r2, %r1, 1; E:", block=128
    )
    (branch,) = rows(on_warp, "bra")
    assert only(branch, "warps", "uniform") == (4, 4)
    assert only(at(on_warp, "add.s32"), *LANES) == (2, 64, 64)
    on_block = counted("setp.eq.u32 %p1, %r30, 1; @%p1 bra E; add.s32 %r2, %r1, 1; E:", grid=3, block=128)
    (branch,) = rows(on_block, "bra")
    assert only(branch, "warps", "uniform") == (12, 12)
    assert only(at(on_block, "add.s32"), *LANES) == (8, 256, 256)


def test_a_table_of_branches_splits_a_warp_whose_lanes_choose_differently():
    """4 warps, all lanes of warp w but in the third choose entry w mod 3; there the lanes differ: 3 of 4
    uniform."""
    body = """
        shr.u32 %r1, %tid, 5;
        setp.eq.u32 %p1, %r1, 2;
        selp.b32 %r1, %tid, %r1, %p1;
        rem.u32 %r1, %r1, 3;
        TABLE: .branchtargets A, B, C;
        brx.idx %r1, TABLE;
    A:  sub.s32 %r2, %tid, 1; bra END;
    B:  mul.lo.s32 %r2, %tid, 2; bra END;
    C:  xor.b32 %r2, %tid, 3;
    END:
    """
    counts = counted(body, block=128)
    assert only(at(counts, "brx"), "warps", "threads", "uniform") == (4, 128, 3)
    # Threads 64 to 95 modulo 3: 11 of remainder 1, 11 of 2, 10 of 0, beside a whole warp for each entry.
    assert [at(counts, name)["threads"] for name in ("sub.s32", "mul.lo.s32", "xor.b32")] == [74, 43, 11]


def test_a_partial_warp_whose_lanes_agree_is_uniform():
    """33 threads: the second warp has one lane, and cannot split. The first splits at lane 16."""
    counts = counted("setp.lt.u32 %p1, %tid, 16; @%p1 bra E; add.s32 %r2, %r1, 1; E:", block=33)
    (branch,) = rows(counts, "bra")
    assert only(branch, "warps", "threads", "uniform") == (2, 33, 1)
    assert only(at(counts, "add.s32"), *LANES) == (2, 17, 17)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_loop_with_a_trip_count_for_each_lane_runs_as_long_as_the_slowest(schedule):
    """Lane l of both warps makes l mod 4 + 1 rounds: the body runs 4 times a warp, with 32, 24, 16, 8 lanes.

    4 · 2 warps and 80 · 2 lanes. The branch back splits in rounds 1 to 3 and is uniform in the last: 2 of 8.
    """
    body = """
        and.b32 %r1, %tid, 3;
        mov.u32 %r2, 0;
    LOOP:
        sub.s32 %r3, %r2, 7;
        add.s32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %r1;
        @%p1 bra LOOP;
    """
    counts = counted(body, schedule=schedule)
    assert only(at(counts, "sub.s32"), *LANES) == (8, 160, 160)
    assert only(at(counts, "bra"), "warps", "threads", "uniform") == (8, 160, 2)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_lanes_that_look_at_memory_in_a_loop_meet_again_behind_it(schedule):
    """Lane l of 8 warps makes 5 · (l mod 8) + 1 rounds around an atomic that changes nothing.

    The loop runs 36 times a warp, with 4 · (1 + 6 + … + 36) lanes; what follows runs once.
    """
    body = """
        and.b32 %r1, %tid, 7;
        mul.lo.u32 %r1, %r1, 5;
        mov.u32 %r2, 0;
    LOOP:
        atom.global.max.u32 %r3, [%out], 0;
        add.u32 %r4, %r4, %r3;
        add.u32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %r1;
        @%p1 bra LOOP;
        not.b32 %r4, %r4;
    """
    counts = counted(body, 4, 64, schedule=schedule)
    lanes = sum(5 * (lane % 8) + 1 for lane in range(32))
    assert only(at(counts, "atom"), "warps", "threads", "requests") == (8 * 36, 8 * lanes, 8 * 36)
    assert only(at(counts, "not.b32"), "warps", "threads") == (8, 256)


def test_a_predicated_instruction_runs_for_all_and_works_for_some():
    """2 warps; the predicate holds for 20 lanes of the first and for none of the second. A store asks
    once."""
    body = f"""
        setp.lt.u32 %p1, %tid, 20;
        {element("out")}
        @%p1 sub.s32 %r1, %tid, 1;
        @!%p1 mul.lo.s32 %r1, %tid, 2;
        @%p1 st.global.u32 [%rd31], %r1;
        @%p1 fma.rn.f32 %f1, %f2, %f3, %f4;
    """
    counts = counted(body, out=20)
    assert only(at(counts, "sub.s32"), *LANES) == (2, 64, 20)
    assert only(at(counts, "mul.lo.s32"), *LANES) == (2, 64, 44)
    store = at(counts, "st.global")
    assert only(store, *LANES) == (2, 64, 20)
    assert only(store, "requests", "bytes", "sectors") == (1, 80, 3)
    assert at(counts, "fma")["flops"] == 40


def test_a_predicate_that_holds_for_nobody_asks_for_nothing():
    """The instruction runs in 2 warps; no lane is active, no request goes out."""
    counts = counted(f"setp.gt.u32 %p1, %tid, 99; {element('out')} @%p1 st.global.u32 [%rd31], %r1;")
    store = at(counts, "st.global")
    assert only(store, *LANES, "requests", "bytes", "sectors") == (2, 64, 0, 0, 0, 0)


def test_an_early_exit_leaves_the_rest_to_the_others():
    """100 threads of 128 go on: warps of 32, 32, 32 and 4 lanes."""
    counts = counted("setp.ge.u32 %p1, %tid, 100; @%p1 ret; sub.s32 %r1, %tid, 1;", block=128)
    assert only(at(counts, "sub.s32"), *LANES) == (4, 100, 100)


def test_a_function_counts_where_it_is_called():
    """Called twice by 16 lanes of each of 2 warps, and its branch splits none of them further."""
    outside = """
    .func (.param .b32 r) triple(.param .b32 a) {
        .reg .b32 %r<3>;
        ld.param.u32 %r1, [a];
        mul.lo.s32 %r2, %r1, 3;
        st.param.b32 [r], %r2;
        ret;
    }
    """
    call = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %tid; call (b), triple, (a); }"
    body = f"and.b32 %r2, %tid, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; {call} {call} E:"
    counts = snippet_counts(kernel(body, outside=outside), {"out": np.zeros(1, "i4")}, 1, 64)
    assert only(at(counts, "mul.lo.s32"), *LANES) == (4, 64, 64)


FLOPS = {
    "add.f32 %f1, %f2, %f3": 1,
    "sub.f64 %fd1, %fd2, %fd3": 1,
    "mul.f32 %f1, %f2, %f3": 1,
    "fma.rn.f32 %f1, %f2, %f3, %f4": 2,
    "fma.rn.f64 %fd1, %fd2, %fd3, %fd4": 2,
    "mad.rn.f32 %f1, %f2, %f3, %f4": 2,
    "div.rn.f32 %f1, %f2, %f3": 1,
    "sqrt.rn.f32 %f1, %f2": 1,
    "ex2.approx.f32 %f1, %f2": 1,
    "max.f32 %f1, %f2, %f3": 1,
    "neg.f32 %f1, %f2": 0,
    "mov.f32 %f1, %f2": 0,
    "cvt.f64.f32 %fd1, %f2": 0,
    "setp.lt.f32 %p1, %f2, %f3": 0,
    "add.s32 %r1, %r2, %r3": 0,
    "mad.lo.s32 %r1, %r2, %r3, %r4": 0,
}


@pytest.mark.parametrize(("line", "flops"), FLOPS.items(), ids=FLOPS)
def test_a_fused_multiply_add_is_two_operations_and_a_copy_none(line, flops):
    """45 lanes of 2 warps."""
    body = f"setp.ge.u32 %p2, %tid, 45; @%p2 bra E; {line}; E:"
    assert counted(body).total("flops") == 45 * flops


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


def test_approximate_functions_are_counted_apart_from_exact_ones():
    """40 threads, 8 of them under the guard's condition: 40 + 8 + 40 operations; the exact root is none."""
    body = """
        cvt.rn.f32.s32 %f1, %tid;
        setp.lt.u32 %p1, %tid, 8;
        ex2.approx.ftz.f32 %f2, %f1;
        @%p1 lg2.approx.f32 %f3, %f1;
        rsqrt.approx.f32 %f4, %f1;
        sqrt.rn.f32 %f5, %f1;
        add.f32 %f6, %f1, %f2;
    """
    assert counted(body, block=40).total("active", "special") == 88


def test_saxpy():
    """1000 elements in 4 blocks of 256: 32 warps meet the guard. 31 lie inside it and 1 splits at 1000 − 31 ·
    32 = 8.

    1000 · 2 operations on 1000 · 3 · 4 bytes; 2 · 32 loads and 32 stores of 125 sectors each.
    """
    counts = counts_of(saxpy[4, 256], np.float32(2), np.ones(1000, np.float32), np.ones(1000, np.float32))
    guard = at(counts, "if i < x.size", kind="branch")
    assert only(guard, "warps", "threads", "uniform") == (32, 1024, 31)
    assert counts.total("flops") == 2000
    assert counts.total("bytes", space="global") == 12_000
    assert counts.total("requests", "load", "global") == 64
    assert counts.total("sectors", "load", "global") == 250
    assert counts.total("sectors", "store", "global") == 125


@cuda.jit
def warp_sums(x, out):
    i = cuda.grid(1)
    v = x[i]
    v += cuda.shfl_down_sync(0xFFFFFFFF, v, 16)
    v += cuda.shfl_down_sync(0xFFFFFFFF, v, 8)
    v += cuda.shfl_down_sync(0xFFFFFFFF, v, 4)
    v += cuda.shfl_down_sync(0xFFFFFFFF, v, 2)
    v += cuda.shfl_down_sync(0xFFFFFFFF, v, 1)
    if i % 32 == 0:
        out[i // 32] = v


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_shuffles_count_once_a_warp(schedule):
    """5 shuffles by 6 warps, all lanes; 5 sums a lane; the result is stored by 6 requests of one lane."""
    from gpulab.simulator import device

    x, out = np.arange(192, dtype=np.float32), np.zeros(6, np.float32)
    with device.current().using(schedule=SCHEDULES[schedule]):
        counts = counts_of(warp_sums[3, 64], x, out)
    np.testing.assert_array_equal(out, x.reshape(6, 32).sum(axis=1))
    assert only(at(counts, kind="shuffle"), *LANES) == (30, 960, 960)
    assert counts.total("flops") == 5 * 192
    assert only(at(counts, kind="store", space="global"), "requests", "bytes", "sectors") == (6, 24, 6)


@cuda.jit
def collatz(x, out):
    i = cuda.grid(1)
    n = x[i]
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    out[i] = steps


def test_a_loop_that_depends_on_data_keeps_a_warp_as_long_as_its_slowest_lane():
    """Lane l of 64 holds l + 1. The warps make as many rounds as the longest chain in them, and as many lanes
    take part as have not come to 1: what the branch back counts is the sum of both over all rounds."""

    def chain(n: int) -> int:
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    lengths = np.array([chain(n) for n in range(1, 65)])
    out = np.zeros(64, np.int64)
    counts = counts_of(collatz[1, 64], np.arange(1, 65), out)
    np.testing.assert_array_equal(out, lengths)
    body = at(counts, "steps += 1", kind="arithmetic")
    instructions = sum("steps += 1" in text for text in lines_of(counts, "arithmetic"))
    assert body["warps"] == instructions * (lengths[:32].max() + lengths[32:].max())
    assert body["threads"] == instructions * lengths.sum()


def lines_of(counts, kind: str) -> list[str]:
    from gpulab.simulator.simt.errors import source_text

    return [
        source_text(i.location)
        for i, (k, _) in zip(counts.instructions, counts.kinds, strict=True)
        if k == kind
    ]


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_barrier_counts_once_for_all_warps_however_they_come(schedule):
    """3 blocks of 96 threads pass two barriers; the lanes come to the first one in two groups."""
    body = """
        setp.lt.u32 %p1, %tid, 50;
        @%p1 bra E;
        sub.s32 %r1, %tid, 1;
        E: bar.sync 0;
        bar.sync 0;
    """
    counts = counted(body, 3, 96, schedule=schedule)
    assert only(at(counts, kind="barrier"), *LANES) == (18, 576, 576)
