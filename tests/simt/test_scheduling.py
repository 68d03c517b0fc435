"""Who runs when: locks, waiting blocks, endless kernels, and results that do not hang on the schedule."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings

from gpulab.simulator import simt
from gpulab.simulator.simt import engine, run

from .drawing import seeds
from .launching import SCHEDULES, element, kernel, launch

LOCKED_SUM = """
AGAIN:
    atom.global.cas.b32 %r1, [%lock], 0, 1;
    setp.ne.s32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    membar.gl;
    ld.volatile.global.u32 %r2, [%sum];
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%sum], %r2;
    membar.gl;
    atom.global.exch.b32 %r3, [%lock], 0;
"""

GRID_BARRIER = """
    mov.u32 %r10, 0;
ROUND:
    bar.sync 0;
    setp.ne.s32 %p1, %tid, 0;
    @%p1 bra TOGETHER;
    membar.gl;
    atom.global.add.u32 %r1, [%arrived], 1;
    add.u32 %r2, %r10, 1;
    mov.u32 %r3, %nctaid.x;
    mul.lo.u32 %r2, %r2, %r3;
WAIT:
    ld.volatile.global.u32 %r4, [%arrived];
    setp.lt.u32 %p2, %r4, %r2;
    @%p2 bra WAIT;
TOGETHER:
    bar.sync 0;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p3, %r10, 30;
    @%p3 bra ROUND;
"""

# Block b waits until block b + 1 has written its word; the last block waits for nobody.
WAITS_FOR_THE_NEXT_BLOCK = f"""
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %ctaid.x;
    add.u32 %r3, %r2, 1;
    setp.eq.u32 %p1, %r3, %r1;
    @%p1 bra GO;
    {element("out", "%r3")}
WAIT:
    ld.volatile.global.u32 %r4, [%rd31];
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra WAIT;
GO:
    {element("out", "%r2")}
    st.volatile.global.u32 [%rd31], 1;
"""


def word() -> np.ndarray:
    return np.zeros(1, np.uint32)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize(
    ("grid", "block"), [(1, 32), (1, 96), (6, 32)], ids=["lanes of a warp", "warps", "blocks"]
)
def test_a_spin_lock_is_taken_by_one_thread_after_the_other(grid, block, schedule):
    arrays = {"lock": word(), "sum": word()}
    found = launch(kernel(LOCKED_SUM, "lock sum"), arrays, grid, block, schedule=schedule)
    assert found["sum"][0] == grid * block
    assert found["lock"][0] == 0


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_block_may_wait_for_a_later_one(schedule):
    """Also where each block is a chunk of its own."""
    found = launch(
        kernel(WAITS_FOR_THE_NEXT_BLOCK),
        {"out": np.zeros(24, np.uint32)},
        24,
        32,
        schedule=schedule,
        resident_blocks=24,
    )
    assert (found["out"] == 1).all()


def test_a_block_in_a_chunk_of_its_own_waits_for_a_later_one(monkeypatch):
    monkeypatch.setattr(engine, "CHUNK_LANES", 32)
    out = {"out": np.zeros(8, np.uint32)}
    found = launch(kernel(WAITS_FOR_THE_NEXT_BLOCK), out, 8, 32, resident_blocks=8)
    assert (found["out"] == 1).all()


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_all_blocks_of_a_grid_meet_thirty_times(schedule, monkeypatch):
    """Chunks that wait for each other make progress in small steps; none of them is the last word."""
    monkeypatch.setattr(engine, "CHUNK_LANES", 128)
    found = launch(
        kernel(GRID_BARRIER, "arrived"), {"arrived": word()}, 6, 64, schedule=schedule, resident_blocks=6
    )
    assert found["arrived"][0] == 6 * 30


def test_a_lane_that_computes_for_long_is_not_taken_for_one_that_waits():
    """31 lanes look at a flag that the other one sets after 20,000 rounds of arithmetic."""
    body = """
        mov.u32 %r1, 0;
        setp.eq.u32 %p1, %tid, 0;
        @%p1 bra WORK;
    WAIT:
        ld.volatile.global.u32 %r2, [%out];
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra WAIT;
        bra END;
    WORK:
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p3, %r1, 20000;
        @%p3 bra WORK;
        st.volatile.global.u32 [%out], %r1;
    END:
    """
    assert launch(kernel(body), {"out": word()}, resident_blocks=1)["out"][0] == 20000


def test_a_lane_that_counts_its_looks_lets_another_compute_for_long():
    body = """
        mov.u32 %r1, 0;
        setp.ne.u32 %p1, %tid, 0;
        @%p1 bra WORK;
    LOOK:
        add.u32 %r1, %r1, 1;
        ld.volatile.global.u32 %r2, [%out];
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra LOOK;
        bra END;
    WORK:
        add.u32 %r1, %r1, 1;
        ld.volatile.global.u32 %r2, [%other];
        setp.lt.u32 %p3, %r1, 3000;
        @%p3 bra WORK;
        st.volatile.global.u32 [%out], %r1;
    END:
    """
    found = launch(kernel(body, "out other"), {"out": word(), "other": word()}, 1, 2)
    assert found["out"][0] == 3000


def test_a_lane_that_looks_often_in_vain_but_comes_to_its_end_is_no_endless_one():
    body = """
        mov.u32 %r1, 0;
    LOOK:
        ld.volatile.global.u32 %r2, [%out];
        atom.global.max.u32 %r3, [%out], 0;
        add.u32 %r2, %r2, %r3;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 5000;
        @%p1 bra LOOK;
        add.u32 %r2, %r2, %r1;
        red.global.max.u32 [%out], %r2;
    """
    for grid in (1, 3):
        assert launch(kernel(body), {"out": word()}, grid, 32, schedule=simt.warp_serial(1))["out"][0] >= 5000


def test_a_timeout_is_no_endless_loop():
    """A thread looks at a flag that nobody sets, and gives up when its clock says so."""
    body = """
        mov.u64 %rd1, %clock64;
        add.s64 %rd2, %rd1, 20000;
    LOOK:
        ld.volatile.global.u32 %r2, [%out];
        setp.ne.u32 %p1, %r2, 0;
        @%p1 bra END;
        mov.u64 %rd3, %clock64;
        setp.lt.s64 %p2, %rd3, %rd2;
        @%p2 bra LOOK;
        st.global.u32 [%out+4], 1;
    END:
    """
    assert launch(kernel(body), {"out": np.zeros(2, np.uint32)})["out"].tolist() == [0, 1]


def test_more_waiting_blocks_than_the_device_holds_is_a_message():
    with pytest.raises(simt.Endless) as fault:
        launch(
            kernel(WAITS_FOR_THE_NEXT_BLOCK),
            {"out": np.zeros(24, np.uint32)},
            24,
            32,
            resident_blocks=3,
        )
    assert str(fault.value).splitlines() == [
        "No end in kernel snippet",
        "thread (0, 0, 0) of block (0, 0, 0) waits for a block that cannot be resident: "
        "the device is full of blocks that wait.",
        "95 more threads did so.",
        "Blocks may only wait for blocks that are sure to be running.",
    ]


# A block's first thread takes a lock for all of it, as cuTile does: it tells the others what it found through
# shared memory, so each round of waiting stores the same value there once more.
LOCK_OF_A_BLOCK = """
    .shared .align 4 .b8 found[4];
    setp.ne.u32 %p1, %tid, 0;
    WAIT:
    @%p1 bra LOOK;
    atom.global.acq_rel.exch.b32 %r1, [%lock], 1; st.shared.b32 [found], %r1;
    LOOK:
    bar.sync 0; ld.shared.b32 %r2, [found]; bar.sync 0;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra WAIT;
    @%p1 bra DONE;
    ld.global.u32 %r3, [%sum]; add.u32 %r3, %r3, 1; st.global.u32 [%sum], %r3;
    DONE:
    bar.sync 0;
    @%p1 bra OUT;
    atom.global.acq_rel.exch.b32 %r4, [%lock], 0;
    OUT:
"""


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_lock_that_blocks_take_in_turn_is_given_to_each(schedule):
    arrays = {"lock": word(), "sum": word()}
    found = launch(kernel(LOCK_OF_A_BLOCK, "lock sum"), arrays, 5, 64, schedule=schedule, limit=20_000)
    assert found["sum"] == 5


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_waiting_for_a_flag_that_nobody_sets_is_a_message(schedule):
    body = "WAIT: ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT;"
    with pytest.raises(simt.Endless, match="waits for a change of memory that no other thread makes"):
        launch(kernel(body), {"out": word()}, 2, 64, schedule=schedule)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_lock_that_is_never_given_back_is_a_message(schedule):
    body = LOCKED_SUM.replace("atom.global.exch.b32 %r3, [%lock], 0;", "")
    with pytest.raises(simt.Endless, match="waits for a change of memory that no other thread makes"):
        launch(kernel(body, "lock sum"), {"lock": word(), "sum": word()}, 1, 64, schedule=schedule)


COUNTING = """
    LOOP: add.u32 %r1, %r1, %at; mul.lo.u32 %r2, %r1, %r1; setp.ne.u32 %p1, %r2, 77; @%p1 bra LOOP;
    OUT:"""


def test_an_endless_loop_is_a_message_after_a_number_of_instructions():
    with pytest.raises(simt.Endless) as fault:
        launch(kernel(COUNTING), {"out": word()}, 16, 64, limit=200_000)
    assert str(fault.value).splitlines() == [
        "No end in kernel snippet",
        "thread (0, 0, 0) of block (0, 0, 0) was still running after 200,000 instructions.",
        "1,023 more threads did so.",
        "Does the condition of its loop become false for every thread?",
    ]


def test_without_a_limit_an_endless_loop_is_stopped_by_its_time_and_the_message_names_the_way_out(
    monkeypatch,
):
    monkeypatch.setattr(run, "LIMIT", 50_000)
    monkeypatch.setattr(run, "SECONDS", 0.2)
    with pytest.raises(simt.Endless) as fault:
        launch(kernel(COUNTING), {"out": word()}, 1, 32)
    assert re.search(r"after [\d,]+ instructions and 0 s of simulation", fault.value.what)
    assert fault.value.advice.splitlines()[1] == (
        "If it does end, allow as many instructions as it needs: GPULAB_LIMIT=N in the environment, "
        "gpulab run --limit N, or pytest --gpulab-limit N."
    )


def test_a_loop_of_more_instructions_than_the_old_limit_ends():
    body = "mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 1100000; @%p1 bra LOOP;"
    body += "st.global.u32 [%out], %r1;"
    assert launch(kernel(body), {"out": word()}, 1, 1)["out"] == 1_100_000


# Loops in which nothing changes on which their end depends. Each is found in the time of 20,000 instructions.
CIRCLES = {
    "without an end": "LOOP: add.u32 %r1, %r1, 1; bra LOOP;",
    "that stores": "LOOP: add.u32 %r1, %r1, 1; st.global.u32 [%out], %r1; bra LOOP;",
    "with an index that stays": """
        mov.u32 %r2, 3;
        LOOP: add.u32 %r1, %r1, %at; setp.gt.u32 %p1, %r2, 0; @%p1 bra LOOP;""",
    "with a barrier, by half of the threads": """
        LOOP: bar.sync 0; setp.lt.u32 %p1, %tid, 32; @!%p1 bra MEET; add.u32 %r1, %r1, 1;
        MEET: setp.ge.u32 %p2, %tid, 0; @%p2 bra LOOP;""",
    "that reached NaN": """
        mov.f32 %f1, 0f7F800000;
        LOOP: sub.f32 %f1, %f1, %f1; setp.ltu.f32 %p1, %f1, 0f00000000; @%p1 bra LOOP;""",
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("body", CIRCLES.values(), ids=CIRCLES)
def test_a_loop_in_which_nothing_changes_is_a_message_at_once(body, schedule):
    with pytest.raises(
        simt.Endless, match="goes round a loop forever: nothing that its condition depends on"
    ):
        launch(kernel(body), {"out": word()}, 2, 64, schedule=schedule, limit=60_000)


# Loops that end after many rounds that look alike.
SLOW = {
    "an index that shows in its upper bits only": """
        mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; shr.u32 %r2, %r1, 13; setp.eq.u32 %p1, %r2, 0; @%p1 bra LOOP;""",
    "a counter in memory": """
        LOOP: ld.global.u32 %r1, [%out]; add.u32 %r1, %r1, 1; st.global.u32 [%out], %r1;
        setp.lt.u32 %p1, %r1, 7000; @%p1 bra LOOP;""",
    "a carry": """
        mov.u32 %r1, 0xffffe000; mov.u32 %r2, 0;
        LOOP: add.cc.u32 %r1, %r1, 1; addc.u32 %r2, %r2, 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra LOOP;""",
    "an index of one thread, by a shuffle": """
        mov.u32 %r1, 0;
        LOOP: setp.eq.u32 %p2, %tid, 5; @%p2 add.u32 %r1, %r1, 1; shfl.sync.idx.b32 %r2, %r1, 5, 31, 0xffffffff;
        setp.lt.u32 %p1, %r2, 5000; @%p1 bra LOOP;""",
    "a clock": """
        mov.u64 %rd1, %clock64; add.u64 %rd1, %rd1, 30000;
        LOOP: mov.u64 %rd2, %clock64; setp.lt.u64 %p1, %rd2, %rd1; @%p1 bra LOOP;""",
}


@pytest.mark.parametrize("body", SLOW.values(), ids=SLOW)
def test_a_loop_that_ends_is_not_taken_for_a_circle(body, monkeypatch):
    monkeypatch.setattr(run, "WATCH_AFTER", 10)
    launch(kernel(body), {"out": word()}, 1, 32, limit=100_000)


def test_the_limit_is_for_a_chunk_of_blocks_and_not_for_the_launch(monkeypatch):
    monkeypatch.setattr(engine, "CHUNK_LANES", 32)
    body = "mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra LOOP;"
    launch(kernel(body), {"out": word()}, 50, 32, limit=400)
    with pytest.raises(simt.Endless):
        launch(kernel(body), {"out": word()}, 1, 32, limit=300)


# Without races: each thread walks a chain of its own length, warps vote, blocks turn a tile around.
RACE_FREE = f"""
    {element("x")}
    ld.global.u32 %r1, [%rd31];
    mov.u32 %r2, 0;
    and.b32 %r3, %r1, 15;
STEP:
    setp.ge.u32 %p1, %r2, %r3;
    @%p1 bra DONE;
    mad.lo.u32 %r1, %r1, 1664525, 1013904223;
    add.u32 %r2, %r2, 1;
    bra STEP;
DONE:
    setp.lt.s32 %p2, %r1, 0;
    vote.sync.ballot.b32 %r4, %p2, -1;
    popc.b32 %r5, %r4;
    shl.b32 %r6, %tid, 2;
    mov.u32 %r7, tile;
    add.u32 %r8, %r7, %r6;
    st.shared.u32 [%r8], %r1;
    bar.sync 0;
    mov.u32 %r9, %ntid.x;
    sub.u32 %r10, %r9, %tid;
    sub.u32 %r10, %r10, 1;
    shl.b32 %r10, %r10, 2;
    add.u32 %r10, %r7, %r10;
    ld.shared.u32 %r11, [%r10];
    add.u32 %r12, %r11, %r5;
    and.b32 %r13, %r11, 7;
    {element("bins", "%r13", into="%rd30")}
    red.global.add.u32 [%rd30], 1;
    {element("out")}
    st.global.u32 [%rd31], %r12;
"""
TILE = ".shared .align 4 .b8 tile[4096];"


@settings(max_examples=15)
@given(seeds)
def test_without_races_neither_chunks_nor_schedules_change_the_result(seed):
    generator = np.random.default_rng(seed)
    grid, block = int(generator.integers(1, 9)), 32 * int(generator.integers(1, 5))
    arrays = {
        "x": generator.integers(0, 2**32, grid * block, dtype=np.uint32),
        "bins": np.zeros(8, np.uint32),
        "out": np.zeros(grid * block, np.uint32),
    }
    text = kernel(RACE_FREE, "x bins out", TILE)
    expected = launch(text, arrays, grid, block)
    assert expected["bins"].sum() == grid * block
    before = engine.CHUNK_LANES
    try:
        for engine.CHUNK_LANES in (1, block, 3 * block):
            for schedule in (simt.LOCKSTEP, simt.BACKWARDS, simt.two_teams(seed), simt.warp_serial(seed)):
                found = launch(text, arrays, grid, block, schedule=schedule)
                for name in arrays:
                    np.testing.assert_array_equal(found[name], expected[name], err_msg=f"{name}, {schedule}")
    finally:
        engine.CHUNK_LANES = before


def test_a_missing_barrier_shows_when_warps_run_one_after_the_other():
    """Thread t reads what thread t + 32 has written. In lockstep all write before one reads."""
    body = f"""
        mov.u32 %r1, tile;
        shl.b32 %r2, %tid, 2;
        add.u32 %r3, %r1, %r2;
        st.shared.u32 [%r3], %tid;
        add.u32 %r4, %tid, 32;
        and.b32 %r4, %r4, 127;
        shl.b32 %r4, %r4, 2;
        add.u32 %r4, %r1, %r4;
        ld.shared.u32 %r5, [%r4];
        {element("out")}
        st.global.u32 [%rd31], %r5;
    """
    text = kernel(body, outside=TILE)
    out = {"out": np.zeros(128, np.int32)}
    right = (np.arange(128) + 32) % 128
    np.testing.assert_array_equal(launch(text, out, 1, 128)["out"], right)
    serial = launch(text, out, 1, 128, schedule=simt.warp_serial(0))["out"]
    assert (serial != right).any()
    assert set(serial[serial != right]) == {-1}, "unwritten shared memory is all ones"


def arrivals(schedule: simt.Schedule, grid: int, block: int) -> list[int]:
    """Each thread appends its number in the grid to a list: what it holds in the end."""
    body = f"""
        mad.lo.u32 %r1, %ctaid.x, %ntid.x, %tid.x;
        atom.global.add.u32 %r2, [%count], 1;
        {element("out", "%r2")}
        st.global.u32 [%rd31], %r1;
    """
    arrays = {"count": word(), "out": np.zeros(grid * block, np.uint32)}
    return launch(kernel(body, "count out"), arrays, grid, block, schedule=schedule)["out"].tolist()


@pytest.mark.parametrize("schedule", [simt.warp_serial, simt.two_teams])
def test_a_seed_repeats_its_order_and_another_seed_has_another(schedule):
    assert arrivals(schedule(5), 40, 1) == arrivals(schedule(5), 40, 1)
    assert arrivals(schedule(5), 40, 1) != arrivals(schedule(6), 40, 1)
    assert sorted(arrivals(schedule(6), 40, 1)) == list(range(40))


def test_backwards_the_last_lane_of_the_last_block_comes_first():
    assert arrivals(simt.LOCKSTEP, 3, 64) == list(range(192))
    assert arrivals(simt.BACKWARDS, 3, 64) == list(range(192))[::-1]


def test_one_of_two_teams_is_done_before_the_other_begins():
    """Each warp is in one team as a whole, and some warps of both blocks are in either."""
    warps = np.array(arrivals(simt.two_teams(1), 2, 256)) // 32
    ahead = [int(w) for w in dict.fromkeys(warps.tolist())]
    assert sorted(ahead) == list(range(16)) and ahead != sorted(ahead)
    turns = np.array(ahead) // 8  # the block of each warp, in order of arrival
    assert np.count_nonzero(np.diff(turns)) > 1, "one block would be done before the other"
