"""Counts do not hang on chunks or schedules, and agree with a plain counter for grids and blocks of all
shapes."""

from __future__ import annotations

import struct
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

from gpulab.simulator import ptx, simt
from gpulab.simulator.observe import COLUMNS, Counters
from gpulab.simulator.simt import engine
from tests.simt.drawing import seeds
from tests.simt.engines import each_engine as each_engine
from tests.simt.launching import element, kernel
from tests.simt.test_random_programs import BINS, SLOTS, Writer

from .plain import PlainCounts

# x, y, z of grid and block become one number %at; index is read by each thread, bins are for all.
PLACE = """
    mov.u32 %r20, %ctaid.z;
    mov.u32 %r21, %nctaid.y; mov.u32 %r22, %ctaid.y; mad.lo.u32 %r20, %r20, %r21, %r22;
    mov.u32 %r21, %nctaid.x; mov.u32 %r22, %ctaid.x; mad.lo.u32 %r20, %r20, %r21, %r22;
    mov.u32 %r23, %tid.z;
    mov.u32 %r21, %ntid.y; mov.u32 %r22, %tid.y; mad.lo.u32 %r23, %r23, %r21, %r22;
    mov.u32 %r21, %ntid.x; mov.u32 %r22, %tid.x; mad.lo.u32 %tid, %r23, %r21, %r22;
    mov.u32 %r22, %ntid.y; mul.lo.u32 %r21, %r21, %r22; mov.u32 %r22, %ntid.z; mul.lo.u32 %r21, %r21, %r22;
    mad.lo.u32 %at, %r20, %r21, %tid;
"""
LOAD_INDEX = f"{element('index')} ld.global.u32 %r1, [%rd31];"
BODIES = {
    "gathers of 1, 4, 8 and 16 bytes": f"""
        {LOAD_INDEX}
        {element("x", "%r1", 1, "%rd1")} ld.global.u8 %h1, [%rd1];
        {element("x", "%r1", 4, "%rd1")} ld.global.u32 %r2, [%rd1];
        {element("x", "%r1", 8, "%rd1")} ld.global.u64 %rd2, [%rd1];
        {element("x", "%r1", 16, "%rd1")} ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd1];
        st.global.u32 [%rd31], %r2;
    """,
    "shared memory of 1, 4, 8 and 16 bytes": f"""
        {LOAD_INDEX}
        and.b32 %r1, %r1, 255; mov.u64 %rd1, tile; bar.sync 0;
        mad.wide.u32 %rd2, %r1, 1, %rd1; ld.shared.u8 %h1, [%rd2];
        mad.wide.u32 %rd2, %r1, 4, %rd1; ld.shared.u32 %r2, [%rd2];
        mad.wide.u32 %rd2, %r1, 8, %rd1; ld.shared.f64 %fd1, [%rd2];
        mad.wide.u32 %rd2, %r1, 16, %rd1; ld.shared.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd2];
        and.b32 %r3, %tid, 1; setp.eq.u32 %p1, %r3, 0; @%p1 ld.shared.f64 %fd2, [%rd1];
    """,
    "generic addresses of three spaces": f"""
        {LOAD_INDEX}
        mov.u64 %rd1, own; cvta.local.u64 %rd1, %rd1;
        and.b32 %r1, %r1, 255; mov.u64 %rd2, tile; mad.wide.u32 %rd2, %r1, 4, %rd2; cvta.shared.u64 %rd2, %rd2;
        {element("x", "%r1", into="%rd3")}
        rem.u32 %r2, %r1, 3;
        setp.eq.u32 %p1, %r2, 1; selp.b64 %rd1, %rd2, %rd1, %p1;
        setp.eq.u32 %p2, %r2, 0; selp.b64 %rd1, %rd3, %rd1, %p2;
        bar.sync 0; st.u32 [%rd1], %r1; red.add.u32 [%rd1], 1; ld.u32 %r4, [%rd1];
        @%p1 ld.u8 %h1, [%rd2];
    """,
    "branches, loops and guards": f"""
        {LOAD_INDEX}
        and.b32 %r2, %r1, 7; mov.u32 %r3, 0;
    LOOP:
        setp.ge.u32 %p1, %r3, %r2; @%p1 bra DONE;
        and.b32 %r4, %r3, %r1; setp.eq.u32 %p2, %r4, 0;
        {element("x", "%r4", into="%rd1")}
        @%p2 ld.global.u32 %r5, [%rd1];
        add.u32 %r3, %r3, 1;
        @%p2 bra LOOP;
        xor.b32 %r6, %r3, %r1;
        bra LOOP;
    DONE:
        setp.lt.u32 %p3, %r1, 40; @%p3 ret;
        rem.u32 %r7, %r1, 3;
        TABLE: .branchtargets A, B, A;
        brx.idx %r7, TABLE;
    A:  st.global.u32 [%rd31], %r1; bra END;
    B:  red.global.add.u32 [%bins], 1;
    END:
    """,
    "atomics, local memory and constants": f"""
        {LOAD_INDEX}
        and.b32 %r2, %r1, 15;
        {element("bins", "%r2", into="%rd1")} red.global.add.u32 [%rd1], 1;
        mov.u64 %rd2, tile; mad.wide.u32 %rd3, %r2, 4, %rd2; atom.shared.add.u32 %r3, [%rd3], 1;
        mov.u64 %rd4, own; and.b32 %r4, %r1, 6; mad.wide.u32 %rd5, %r4, 4, %rd4;
        st.local.u32 [%rd5], %r1; st.local.u64 [%rd5], %rd1; ld.local.u8 %h1, [%rd5+1];
        ld.local.v4.u32 {{%r5, %r6, %r7, %r8}}, [%rd4];
        mov.u64 %rd6, table; mad.wide.u32 %rd7, %r2, 4, %rd6;
        ld.const.u32 %r9, [%rd7]; ld.const.u32 %r9, [%rd6];
    """,
}


@cache
def program(name: str) -> simt.Program:
    outside = ".shared .align 16 .b8 tile[4096]; .const .align 4 .b8 table[64] = {1};"
    text = kernel(PLACE + BODIES[name], "index x bins", outside, ".local .align 16 .b8 own[32];")
    return simt.load(ptx.parse(text))


def run(
    name: str, grid: tuple, block: tuple, index: np.ndarray, schedule: simt.Schedule = simt.LOCKSTEP
) -> tuple[Counters, PlainCounts]:
    memory = simt.Memory()
    places = [memory.allocate(n) for n in (index.nbytes, 256 * 16, 64)]
    places[0].data[:] = index.view(np.uint8)
    packed = struct.pack("<3q", *(p.address for p in places))
    observers = Counters(), PlainCounts()
    simt.launch(program(name), grid, block, packed, memory, observers=observers, schedule=schedule)
    return observers


def shapes(generator: np.random.Generator) -> tuple[tuple, tuple]:
    """A grid of up to 8 blocks and a block of up to 96 threads, in up to three dimensions."""
    grid = tuple(int(n) for n in generator.integers(1, 3, 3))
    block = (int(generator.integers(1, 13)), int(generator.integers(1, 5)), int(generator.integers(1, 3)))
    return grid, block


def drawn(seed: int) -> tuple[tuple, tuple, np.ndarray]:
    """Grid, block and an index for each thread: side by side, alike, a few, or anything up to 255."""
    generator = np.random.default_rng(seed)
    grid, block = shapes(generator)
    n = int(np.prod(grid) * np.prod(block))
    kinds = [
        np.arange(n) % 256,
        np.full(n, 7),
        generator.integers(0, 4, n) * 32,
        generator.integers(0, 256, n),
    ]
    return grid, block, kinds[generator.integers(4)].astype(np.uint32)


@pytest.mark.parametrize("name", BODIES)
@settings(max_examples=12)
@given(seed=seeds)
def test_counts_are_those_of_a_plain_counter(name, seed):
    grid, block, index = drawn(seed)
    counters, plain = run(name, grid, block, index)
    assert counters.counts.most_loaded == max(plain.loaded.values(), default=0)
    assert counters.counts.most_asked == max(plain.asked.values(), default=0)
    assert counters.counts.most_handed == plain.most_handed(program(name).instructions)
    for column in COLUMNS:
        if column != "flops":
            found, expected = counters.counts.table[column], plain.column(column, program(name).instructions)
            np.testing.assert_array_equal(found, expected, err_msg=column)


@pytest.mark.parametrize("name", BODIES)
@settings(max_examples=5)
@given(seed=seeds)
def test_counts_hang_neither_on_chunks_nor_on_schedules(name, seed):
    grid, block, index = drawn(seed)
    expected, _ = run(name, grid, block, index)
    before = engine.CHUNK_LANES
    try:
        for engine.CHUNK_LANES, schedule in (
            (1, simt.LOCKSTEP),
            (192, simt.LOCKSTEP),
            (before, simt.warp_serial(seed)),
            (before, simt.warp_serial(seed + 1)),
        ):
            found, _ = run(name, grid, block, index, schedule)
            assert found.counts.most_asked == expected.counts.most_asked
            assert found.counts.most_handed == expected.counts.most_handed
            for column in COLUMNS:
                np.testing.assert_array_equal(
                    found.counts.table[column], expected.counts.table[column], err_msg=f"{column} {schedule}"
                )
    finally:
        engine.CHUNK_LANES = before


@settings(max_examples=10)
@given(seed=seeds)
def test_random_programs_are_counted_alike_in_all_chunks_and_schedules(seed):
    """Branches, loops, guards, early returns, barriers: what a warp does is its own affair."""
    writer = Writer(seed)
    body = writer.program()
    declarations = ".reg .b32 %block; .reg .b64 %stack; .local .align 8 .b8 stack[32];"
    declarations += f".reg .b32 %c<{max(writer.counters, 1)}>;"
    start = "mov.u64 %stack, stack; mov.u32 %block, %ctaid.x; mov.u64 %rd9, tile;\n"
    loaded = simt.load(
        ptx.parse(kernel(start + body, "own bins", ".shared .align 4 .b8 tile[1024];", declarations))
    )
    tables = []
    before = engine.CHUNK_LANES
    try:
        for engine.CHUNK_LANES, schedule in (
            (before, simt.LOCKSTEP),
            (1, simt.LOCKSTEP),
            (1, simt.warp_serial(seed)),
        ):
            memory = simt.Memory()
            places = [memory.allocate(3 * 48 * SLOTS * 4), memory.allocate(BINS * 4)]
            counters, plain = Counters(), PlainCounts()
            packed = struct.pack("<2q", *(p.address for p in places))
            simt.launch(
                loaded, (3, 1, 1), (48, 1, 1), packed, memory, observers=(counters, plain), schedule=schedule
            )
            tables.append(counters.counts.table)
            for column in COLUMNS:
                if column != "flops":
                    found = tables[-1][column]
                    expected = plain.column(column, loaded.instructions)
                    np.testing.assert_array_equal(found, expected, err_msg=column)
    finally:
        engine.CHUNK_LANES = before
    for table in tables[1:]:
        for column in COLUMNS:
            np.testing.assert_array_equal(table[column], tables[0][column], err_msg=f"{column}\n{body}")


def test_counts_of_many_blocks_are_the_sum_of_each_block_alone():
    """A grid of 6 blocks against 6 grids of one: each kernel reads its own part of the indices."""
    generator = np.random.default_rng(3)
    index = generator.integers(0, 256, 6 * 64).astype(np.uint32)
    for name in BODIES:
        together, _ = run(name, (6, 1, 1), (64, 1, 1), index)
        alone = [run(name, (1, 1, 1), (64, 1, 1), index[64 * b : 64 * b + 64])[0] for b in range(6)]
        for column in COLUMNS:
            total = sum(each.counts.table[column] for each in alone)
            np.testing.assert_array_equal(together.counts.table[column], total, err_msg=f"{name} {column}")


def test_conflicts_in_shared_memory_are_counted_through_a_generic_pointer_too():
    """A compiler that cannot tell where a pointer leads writes ``st`` without a space; the banks do not care."""
    told = {}
    for name, space in (("named", ".shared"), ("generic", "")):
        place = "mov.u64 %rd1, tile; mad.wide.u32 %rd1, %tid, 128, %rd1;"
        generic = "" if space else "cvta.shared.u64 %rd1, %rd1;"
        body = f"{place} {generic} st{space}.u32 [%rd1], %tid; ld{space}.u32 %r1, [%rd1];"
        loaded = simt.load(ptx.parse(kernel(body, "x", ".shared .align 4 .b8 tile[4096];")))
        counters, memory = Counters(), simt.Memory()
        packed = struct.pack("<q", memory.allocate(16).address)
        simt.launch(loaded, (1, 1, 1), (32, 1, 1), packed, memory, observers=(counters,))
        told[name] = {
            (column, kind, where): counters.counts.total(column, kind, where)
            for column in ("requests", "bytes", "wavefronts", "ideal_wavefronts", "sectors")
            for kind in ("load", "store")
            for where in ("shared", "global")
        }
    assert told["generic"] == told["named"]
    assert told["generic"]["wavefronts", "store", "shared"] == 32
