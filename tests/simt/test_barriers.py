"""Barriers of a block: who is waited for, what they combine, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.simulator import simt

from .launching import SCHEDULES, element, kernel, launch

TILE = ".shared .align 4 .b8 tile[4096];"
both = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)


def mirrored(n: str, into: str = "%r20") -> str:
    """Thread t writes its %r10 to the tile, passes a barrier, and reads what thread n - 1 - t wrote."""
    return f"""
        mov.u32 %r21, tile;
        shl.b32 %r22, %tid, 2;
        add.u32 %r23, %r21, %r22;
        st.shared.u32 [%r23], %r10;
        bar.sync 0;
        sub.u32 %r24, {n}, 1;
        sub.u32 %r24, %r24, %tid;
        shl.b32 %r24, %r24, 2;
        add.u32 %r24, %r21, %r24;
        ld.shared.u32 {into}, [%r24];
        bar.sync 0;
    """


@both
def test_threads_that_have_left_are_not_waited_for(schedule):
    """All but the first 50 threads of 128 return before the barrier."""
    body = f"""
        setp.ge.u32 %p1, %tid, 50;
        @%p1 ret;
        mul.lo.u32 %r10, %tid, 3;
        {mirrored("50")}
        {element("out")}
        st.global.u32 [%rd31], %r20;
    """
    found = launch(kernel(body, outside=TILE), {"out": np.zeros(256, np.uint32)}, 2, 128, schedule=schedule)
    expected = np.zeros((2, 128))
    expected[:, :50] = 3 * (49 - np.arange(50))
    np.testing.assert_array_equal(found["out"].reshape(2, 128), expected)


@both
def test_threads_that_leave_while_others_wait_release_them(schedule):
    """The upper half walks a loop before it returns; the lower half waits at the barrier from the start."""
    body = f"""
        setp.lt.u32 %p1, %tid, 32;
        @%p1 bra WAIT;
        mov.u32 %r1, 0;
    LOOP:
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p2, %r1, %tid;
        @%p2 bra LOOP;
        ret;
    WAIT:
        bar.sync 0;
        {element("out")}
        st.global.u32 [%rd31], 1;
    """
    found = launch(kernel(body), {"out": np.zeros(64, np.uint32)}, 1, 64, schedule=schedule)["out"]
    np.testing.assert_array_equal(found, np.arange(64) < 32)


@pytest.mark.parametrize("seed", range(4))
def test_a_thread_that_leaves_does_not_let_others_pass_before_its_warp_has_come(seed):
    """Thread 3 returns on the way to a barrier at which the second warp may wait already."""
    body = f"""
        setp.eq.u32 %p1, %tid, 3;
        @%p1 ret;
        mov.u32 %r10, %at;
        {mirrored("64")}
        {element("out")}
        st.global.u32 [%rd31], %r20;
    """
    out = {"out": np.zeros(64, np.uint32)}
    found = launch(kernel(body, outside=TILE), out, 1, 64, schedule=simt.warp_serial(seed))["out"]
    others = ~np.isin(np.arange(64), [3, 60])
    np.testing.assert_array_equal(found[others], (63 - np.arange(64))[others])


@both
def test_each_block_passes_a_barrier_as_often_as_it_likes(schedule):
    """Block b mirrors its values b times: an odd number leaves them turned around."""
    body = f"""
        mov.u32 %r10, %tid;
        mov.u32 %r1, %ctaid.x;
        mov.u32 %r2, 0;
    AGAIN:
        setp.ge.u32 %p1, %r2, %r1;
        @%p1 bra DONE;
        {mirrored("%r31", "%r10")}
        add.u32 %r2, %r2, 1;
        bra AGAIN;
    DONE:
        {element("out")}
        st.global.u32 [%rd31], %r10;
    """
    out = {"out": np.zeros(5 * 64, np.uint32)}
    found = launch(kernel(body, outside=TILE), out, 5, 64, schedule=schedule)["out"].reshape(5, 64)
    for block in range(5):
        np.testing.assert_array_equal(found[block], np.arange(64)[:: -1 if block % 2 else 1])


@both
def test_a_partial_last_warp_passes(schedule):
    body = f"mov.u32 %r10, %at; {mirrored('45')} {element('out')} st.global.u32 [%rd31], %r20;"
    out = {"out": np.zeros(90, np.uint32)}
    found = launch(kernel(body, outside=TILE), out, 2, 45, schedule=schedule)["out"].reshape(2, 45)
    np.testing.assert_array_equal(found, np.arange(90).reshape(2, 45)[:, ::-1])


@both
@pytest.mark.parametrize(
    ("opcode", "operation"),
    [("popc.u32", np.sum), ("and.pred", np.all), ("or.pred", np.any)],
    ids=["count", "and", "or"],
)
def test_a_barrier_counts_and_combines_predicates(opcode, operation, schedule):
    """A block for each number of threads that say yes: none, one, some, all but one, all."""
    limits = np.array([0, 1, 17, 69, 70], np.uint32)
    destination = "%r3" if "popc" in opcode else "%p2"
    body = f"""
        {element("limits", "%r30")}
        ld.global.u32 %r1, [%rd31];
        setp.lt.u32 %p1, %tid, %r1;
        mov.u32 %r3, 0;
        bar.red.{opcode} {destination}, 0, %p1;
        {"" if "popc" in opcode else "selp.u32 %r3, 1, 0, %p2;"}
        {element("out")}
        st.global.u32 [%rd31], %r3;
    """
    arrays = {"limits": limits, "out": np.zeros(5 * 70, np.uint32)}
    found = launch(kernel(body, "limits out"), arrays, 5, 70, schedule=schedule)["out"].reshape(5, 70)
    for limit, row in zip(limits, found, strict=True):
        np.testing.assert_array_equal(row, np.full(70, operation(np.arange(70) < limit)))


@both
def test_named_barriers_with_a_number_of_threads_are_apart(schedule):
    """The warps of the lower half meet at barrier 1, those of the upper half at barrier 2."""
    body = f"""
        mov.u32 %r21, tile;
        shl.b32 %r22, %tid, 2;
        add.u32 %r23, %r21, %r22;
        st.shared.u32 [%r23], %tid;
        setp.ge.u32 %p1, %tid, 64;
        @%p1 bra UPPER;
        bar.sync 1, 64;
        bra READ;
    UPPER:
        bar.sync 2, 64;
    READ:
        xor.b32 %r24, %r22, 128;
        add.u32 %r24, %r21, %r24;
        ld.shared.u32 %r25, [%r24];
        {element("out")}
        st.global.u32 [%rd31], %r25;
    """
    out = {"out": np.zeros(128, np.uint32)}
    found = launch(kernel(body, outside=TILE), out, 1, 128, schedule=schedule)["out"]
    np.testing.assert_array_equal(found, np.arange(128) ^ 32)


@both
def test_one_instruction_may_stand_for_barriers_of_several_numbers(schedule):
    """Warps 2 k and 2 k + 1 meet at barrier k + 1, 64 threads each, in one line."""
    body = f"""
        mov.u32 %r21, tile;
        shl.b32 %r22, %tid, 2;
        add.u32 %r23, %r21, %r22;
        st.shared.u32 [%r23], %tid;
        shr.u32 %r1, %tid, 6;
        add.u32 %r1, %r1, 1;
        bar.sync %r1, 64;
        xor.b32 %r24, %r22, 128;
        add.u32 %r24, %r21, %r24;
        ld.shared.u32 %r25, [%r24];
        {element("out")}
        st.global.u32 [%rd31], %r25;
    """
    out = {"out": np.zeros(256, np.uint32)}
    found = launch(kernel(body, outside=TILE), out, 1, 256, schedule=schedule)["out"]
    np.testing.assert_array_equal(found, np.arange(256) ^ 32)


@both
def test_warps_with_different_tasks_meet_at_a_barrier_for_a_number_of_threads(schedule):
    """The first warp makes a value and the second takes it, each from a branch of its own."""
    body = f"""
        mov.u32 %r21, tile;
        setp.ge.u32 %p1, %tid, 32;
        @%p1 bra TAKE;
        st.shared.u32 [%r21], 42;
        bar.sync 1, 64;
        bra END;
    TAKE:
        bar.sync 1, 64;
        ld.shared.u32 %r1, [%r21];
        {element("out")}
        st.global.u32 [%rd31], %r1;
    END:
    """
    out = {"out": np.zeros(64, np.uint32)}
    found = launch(kernel(body, outside=TILE), out, 1, 64, schedule=schedule)["out"]
    np.testing.assert_array_equal(found, np.where(np.arange(64) < 32, 0, 42))


def test_blocks_may_take_different_branches_to_different_barriers():
    body = f"""
        mov.u32 %r1, %ctaid.x;
        and.b32 %r1, %r1, 1;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra ODD;
        bar.sync 0;
        bra END;
    ODD:
        bar.sync 0;
    END:
        {element("out")}
        st.global.u32 [%rd31], 1;
    """
    assert launch(kernel(body), {"out": np.zeros(256, np.uint32)}, 4, 64)["out"].all()


@both
@pytest.mark.parametrize("other", ["bar.sync 0;", "barrier.sync.aligned 0;", "bar.red.popc.u32 %r3, 0, %p1;"])
def test_whole_warps_meet_at_one_barrier_on_different_lines(other, schedule):
    """PTX counts who comes to a barrier of a number, by warps, whatever instruction they run."""
    body = f"""
        mov.u32 %r21, tile;
        shl.b32 %r22, %tid, 2;
        add.u32 %r23, %r21, %r22;
        st.shared.u32 [%r23], %tid;
        setp.ge.u32 %p1, %tid, 32;
        @%p1 bra UPPER;
        bar.sync 0;
        bra READ;
    UPPER:
        {other}
    READ:
        xor.b32 %r24, %r22, 128;
        add.u32 %r24, %r21, %r24;
        ld.shared.u32 %r25, [%r24];
        {element("out")}
        st.global.u32 [%rd31], %r25;
    """
    out = {"out": np.zeros(3 * 64, np.uint32)}
    found = launch(kernel(body, outside=TILE), out, 3, 64, schedule=schedule)["out"]
    np.testing.assert_array_equal(found, np.tile(np.arange(64) ^ 32, 3))


@both
def test_threads_of_one_warp_at_two_barriers_are_a_message(schedule):
    body = """
        setp.ge.u32 %p1, %tid, 16;
        @%p1 bra UPPER;
        .loc 1 7 0
        bar.sync 0;
        bra END;
    UPPER:
        .loc 1 9 0
        bar.sync 0;
    END:
    """
    # The form that is not aligned is for threads that come from different places.
    launch(
        kernel(body.replace("bar.sync", "barrier.sync")), {"out": np.zeros(1, "u4")}, 3, 32, schedule=schedule
    )
    with pytest.raises(simt.DivergentBarrier) as fault:
        launch(
            kernel(body, outside='.file 1 "nowhere.py"'),
            {"out": np.zeros(1, np.uint32)},
            3,
            32,
            schedule=schedule,
        )
    block = fault.value.block
    assert str(fault.value).splitlines() == [
        "Divergent barrier in kernel snippet, line 7",
        f"thread (0, 0, 0) of block {block} waits at this barrier, while other threads of its warp wait at "
        "another one (line 9).",
        "47 more threads did so." if schedule is simt.LOCKSTEP else "15 more threads did so.",
        "All threads of a block must reach the same barrier: move it out of the branch.",
    ]


def test_a_barrier_for_more_threads_than_come_is_a_message():
    with pytest.raises(simt.DivergentBarrier, match="for 64 threads at barrier 3, but only 32 come"):
        launch(kernel("bar.sync 3, 64;"), {"out": np.zeros(1, np.uint32)}, 1, 32)


MAKE_AND_TAKE = f"""
        mov.u32 %r21, tile;
        mov.u32 %r2, 0;
        setp.ge.u32 %p1, %tid, 32;
        @%p1 bra TAKE;
    MAKE:
        add.u32 %r1, %r2, 40;
        st.shared.u32 [%r21], %r1;
        bar.arrive 1, 64;
        bar.sync 2, 64;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p2, %r2, 3;
        @%p2 bra MAKE;
        bra END;
    TAKE:
        bar.sync 1, 64;
        ld.shared.u32 %r1, [%r21];
        bar.arrive 2, 64;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p2, %r2, 3;
        @%p2 bra TAKE;
        {element("out")}
        st.global.u32 [%rd31], %r1;
    END:
    """


@both
def test_a_warp_may_arrive_and_go_on_while_the_other_waits(schedule):
    """The first warp makes three values, one after the other, and the second takes them."""
    out = {"out": np.zeros(128, np.uint32)}
    found = launch(kernel(MAKE_AND_TAKE, outside=TILE), out, 2, 64, schedule=schedule)["out"]
    np.testing.assert_array_equal(found, np.where(np.arange(128) % 64 < 32, 0, 42))


@pytest.mark.parametrize(
    ("body", "threads", "said"),
    [
        ("bar.sync 1, 40;", 64, "counts on 40 threads at barrier 1"),
        ("bar.sync 1, 0;", 64, "counts on 0 threads at barrier 1"),
        ("bar.sync 1, 64;", 96, "is one of 96 threads that come to barrier 1 for 64"),
        ("bar.arrive 1, 96; bar.arrive 1, 96;", 64, "comes to barrier 1 again before it is complete"),
        ("bar.arrive 1, 96; bar.sync 1, 64;", 64, "comes to barrier 1 again"),
        ("bar.arrive 1, 128; bar.sync 1;", 64, "comes to barrier 1 again"),
    ],
)
def test_threads_for_whom_a_barrier_is_not_are_told(body, threads, said):
    with pytest.raises(simt.DivergentBarrier, match=said) as fault:
        launch(kernel(body), {"out": np.zeros(1, np.uint32)}, 1, threads)
    assert fault.value.advice


@both
def test_a_barrier_for_all_and_one_for_some_do_not_mix(schedule):
    body = """
        setp.ge.u32 %p1, %tid, 32;
        @%p1 bra OTHER;
        bar.sync 1;
        bra END;
    OTHER:
        bar.sync 1, 96;
    END:
    """
    with pytest.raises(simt.DivergentBarrier, match=r"counts on \d+ threads at barrier 1, others there on"):
        launch(kernel(body), {"out": np.zeros(1, np.uint32)}, 1, 64, schedule=schedule)


def test_a_warp_that_is_not_full_counts_as_a_whole_one():
    """48 threads are two warps, and barriers count warps."""
    body = f"""
        bar.sync 1, 64;
        {element("out")}
        st.global.u32 [%rd31], %tid;
    """
    found = launch(kernel(body), {"out": np.zeros(48, np.uint32)}, 1, 48)["out"]
    np.testing.assert_array_equal(found, np.arange(48))
