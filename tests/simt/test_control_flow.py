"""Branches, tables of branches, guards, early exits and the numbers that tell a thread where it is."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.simulator import simt

from .launching import SCHEDULES, element, kernel, launch

both = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)


def run(body: str, grid=2, block=64, schedule=simt.LOCKSTEP, **parts: str) -> np.ndarray:
    """What `body` leaves in %r1 of each thread."""
    shapes = [(s, 1, 1) if isinstance(s, int) else s for s in (grid, block)]
    threads = int(np.prod(shapes))
    text = kernel(f"{body} {element('out')} st.global.u32 [%rd31], %r1;", **parts)
    return launch(text, {"out": np.full(threads, 7777, np.uint32)}, *shapes, schedule=schedule)["out"]


@both
def test_a_table_of_branches_sends_each_lane_to_its_own_place(schedule):
    body = """
        rem.u32 %r2, %tid, 4;
        TABLE: .branchtargets A, B, C, A;
        brx.idx %r2, TABLE;
    A:  mov.u32 %r1, 100; bra END;
    B:  mov.u32 %r1, 200; bra END;
    C:  mov.u32 %r1, 300;
    END: add.u32 %r1, %r1, %tid;
    """
    tid = np.arange(128) % 64
    expected = np.array([100, 200, 300, 100])[tid % 4] + tid
    np.testing.assert_array_equal(run(body, schedule=schedule), expected)


@both
def test_loops_in_branches_in_loops_with_breaks(schedule):
    """Odd i < tid % 8 add i·j for j < i until the sum passes 20, even ones subtract one; i = 6 leaves."""
    body = """
        rem.u32 %r2, %tid, 8;
        mov.u32 %r1, 0; mov.u32 %r3, 0;
    OUTER:
        setp.ge.u32 %p1, %r3, %r2;
        @%p1 bra DONE;
        setp.eq.u32 %p2, %r3, 6;
        @%p2 bra DONE;
        and.b32 %r4, %r3, 1;
        setp.ne.u32 %p3, %r4, 0;
        @%p3 bra ODD;
        sub.u32 %r1, %r1, 1;
        bra NEXT;
    ODD:
        mov.u32 %r5, 0;
    INNER:
        setp.ge.u32 %p4, %r5, %r3;
        @%p4 bra NEXT;
        mad.lo.u32 %r1, %r3, %r5, %r1;
        setp.gt.s32 %p5, %r1, 20;
        @%p5 bra NEXT;
        add.u32 %r5, %r5, 1;
        bra INNER;
    NEXT:
        add.u32 %r3, %r3, 1;
        bra OUTER;
    DONE:
    """

    def one(n: int) -> int:
        total = 0
        for i in range(n):
            if i == 6:
                break
            if i % 2 == 0:
                total -= 1
                continue
            for j in range(i):
                total += i * j
                if total > 20:
                    break
        return total % 2**32

    expected = [one(t % 64 % 8) for t in range(128)]
    np.testing.assert_array_equal(run(body, schedule=schedule), expected)


@both
def test_branches_that_cross_each_other_come_out_right(schedule):
    """No structured language makes these: two arms that jump into each other's middle."""
    body = """
        and.b32 %r2, %tid, 3;
        mov.u32 %r1, 0;
        setp.lt.u32 %p1, %r2, 2;
        @%p1 bra LEFT;
        add.u32 %r1, %r1, 1;
        setp.eq.u32 %p2, %r2, 2;
        @%p2 bra INTO_LEFT;
    INTO_RIGHT:
        add.u32 %r1, %r1, 10;
        bra END;
    LEFT:
        add.u32 %r1, %r1, 100;
        setp.eq.u32 %p3, %r2, 1;
        @%p3 bra INTO_RIGHT;
    INTO_LEFT:
        add.u32 %r1, %r1, 1000;
    END:
    """
    expected = np.array([1100, 110, 1001, 11])[np.arange(128) % 4]
    np.testing.assert_array_equal(run(body, schedule=schedule), expected)


def test_a_guard_keeps_the_old_value_of_lanes_for_which_it_does_not_hold():
    body = """
        mov.u32 %r1, 5;
        and.b32 %r2, %tid, 1;
        setp.eq.u32 %p1, %r2, 1;
        @%p1 add.u32 %r1, %r1, %tid;
        @!%p1 mul.lo.u32 %r1, %r1, 100;
        setp.gt.u32 %p2, %tid, 100;
        @%p2 mov.u32 %r1, 0;
    """
    tid = np.arange(128) % 64
    np.testing.assert_array_equal(run(body), np.where(tid % 2, tid + 5, 500))


def test_a_guarded_comparison_and_a_guarded_pair_keep_predicates():
    """%p2 is set by half of the lanes only; %p3|%p4 are each other's opposite."""
    body = """
        setp.lt.u32 %p1, %tid, 32;
        setp.eq.u32 %p2, %tid, 1000;
        @%p1 setp.ge.u32 %p2, %tid, 16;
        setp.lt.u32 %p3|%p4, %tid, 8;
        selp.u32 %r1, 1, 0, %p2;
        @%p3 add.u32 %r1, %r1, 10;
        @%p4 add.u32 %r1, %r1, 100;
    """
    tid = np.arange(128) % 64
    np.testing.assert_array_equal(run(body), ((tid >= 16) & (tid < 32)) + np.where(tid < 8, 10, 100))


def test_guarded_loads_stores_and_atomics_touch_nothing_for_the_other_lanes():
    """The other lanes hold addresses that would fault."""
    body = f"""
        {element("x", "%tid", into="%rd1")}
        setp.lt.u32 %p1, %tid, 10;
        mov.u32 %r1, 1;
        @%p1 ld.global.u32 %r1, [%rd1];
        @%p1 atom.global.add.u32 %r2, [%rd1], 100;
        @%p1 add.u32 %r3, %r1, %r2;
        @%p1 st.global.u32 [%rd1], %r3;
        setp.gt.u32 %p2, %tid, 4000;
        @%p2 st.global.u32 [%rd2], %r1;
    """
    found = launch(kernel(body, "x"), {"x": np.arange(10, dtype=np.uint32)}, 1, 64)["x"]
    np.testing.assert_array_equal(found, 2 * np.arange(10))


@both
def test_threads_leave_wherever_they_like(schedule):
    """By ret, by exit, under a guard, in a loop and at the end."""
    body = """
        mov.u32 %r1, 0;
        setp.eq.u32 %p1, %tid, 3;
        @%p1 ret;
        setp.lt.u32 %p2, %tid, 2;
        @%p2 bra EARLY;
    LOOP:
        add.u32 %r1, %r1, 1;
        setp.eq.u32 %p3, %r1, 40;
        @%p3 exit;
        setp.lt.u32 %p4, %r1, %tid;
        @%p4 bra LOOP;
        bra END;
    EARLY:
        exit;
    END:
    """
    found = run(body, schedule=schedule).reshape(2, 64)
    tid = np.arange(64)
    left = (tid < 2) | (tid == 3) | (tid >= 40)
    for block in found:
        np.testing.assert_array_equal(block, np.where(left, 7777, tid))


@both
def test_every_number_of_a_grid_of_three_dimensions(schedule):
    grid, block = (2, 3, 4), (5, 2, 3)
    names = [f"%{n}.{axis}" for n in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"]
    names += ["%laneid", "%warpid", "%lanemask_lt"]
    body = """
        mov.u32 %r1, %ctaid.z; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %ctaid.y;
        mad.lo.u32 %r1, %r1, %r2, %r3; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x;
        mad.lo.u32 %r1, %r1, %r2, %r3; mov.u32 %r4, %tid.z; mov.u32 %r5, %ntid.y; mov.u32 %r6, %tid.y;
        mad.lo.u32 %r4, %r4, %r5, %r6; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x;
        mad.lo.u32 %r4, %r4, %r5, %r6;
        mad.lo.u32 %r1, %r1, 30, %r4;
    """
    for i, name in enumerate(names):
        body += f"mad.lo.u32 %r7, %r1, {len(names)}, {i}; {element('out', '%r7')}"
        body += f"mov.u32 %r8, {name}; st.global.u32 [%rd31], %r8;"
    out = np.zeros((24 * 30, len(names)), np.uint32)
    found = launch(kernel(body), {"out": out}, grid, block, schedule=schedule)["out"]
    row = 0
    for block_place in np.ndindex(grid[::-1]):
        for linear, place in enumerate(np.ndindex(block[::-1])):
            lane = linear % 32
            expected = [*place[::-1], *block_place[::-1], *block, *grid, lane, linear // 32, (1 << lane) - 1]
            assert found[row].tolist() == expected
            row += 1


def test_uniform_and_varying_values_mix_in_a_branch():
    """A register that is uniform in one arm, per block in the other and per lane after both."""
    body = """
        mov.u32 %r2, %ctaid.x;
        setp.lt.u32 %p1, %tid, 7;
        @%p1 bra FEW;
        mul.lo.u32 %r1, %r2, 1000;
        bra JOIN;
    FEW:
        mov.u32 %r1, 5;
    JOIN:
        add.u32 %r1, %r1, %r2;
    """
    block, tid = np.arange(256) // 64, np.arange(256) % 64
    np.testing.assert_array_equal(run(body, grid=4), np.where(tid < 7, 5, block * 1000) + block)
