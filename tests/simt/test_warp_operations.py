"""Shuffles, votes, matches and sums of a warp against loops over lanes, and how lanes come to meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from gpulab.simulator import simt

from .drawing import seeds
from .launching import SCHEDULES, element, kernel, launch

FULL = 0xFFFFFFFF


def run(body: str, arrays: dict[str, np.ndarray], **options) -> dict[str, np.ndarray]:
    """Two blocks of two warps: each thread loads element `%at` of the inputs a, b, c … into %a, %b, %c."""
    inputs = [name for name in arrays if len(name) == 1]
    loads = "".join(
        f"{element(f'in_{n}', size=arrays[n].itemsize)} ld.global.b{8 * arrays[n].itemsize} %{n}, [%rd31];"
        for n in inputs
    )
    registers = "".join(f".reg .b{8 * arrays[n].itemsize} %{n};" for n in inputs)
    stores = "".join(f"{element(n)} st.global.b32 [%rd31], %r_{n};" for n in arrays if n not in inputs)
    registers += "".join(f".reg .b32 %r_{n};" for n in arrays if n not in inputs)
    parameters = [f"in_{n}" if n in inputs else n for n in arrays]
    text = kernel(loads + body + stores, " ".join(parameters), declarations=registers)
    return launch(text, dict(zip(parameters, arrays.values(), strict=True)), 2, 64, **options)


def by_warp(function, *columns: np.ndarray) -> np.ndarray:
    """`function(lane, rows)` for every lane of every warp; rows are its 32 values as Python integers."""
    result = []
    for first in range(0, len(columns[0]), 32):
        rows = [[int(v) for v in column[first : first + 32]] for column in columns]
        result += [function(lane, *rows) for lane in range(32)]
    return np.array(result, np.int64).astype(np.uint32)


def shuffled(mode: str, lane: int, value: list[int], b: int, c: int) -> tuple[int, int]:
    """shfl.sync by the PTX manual: the value, and whether the source lane was in range."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    last = (lane & segment) | (clamp & ~segment)
    if mode == "up":
        source, valid = lane - b, lane - b >= last
    elif mode == "down":
        source, valid = lane + b, lane + b <= last
    elif mode == "bfly":
        source, valid = lane ^ b, lane ^ b <= last
    else:
        source = (lane & segment) | (b & ~segment)
        valid = source <= last
    return value[source if valid else lane], int(valid)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("width", [32, 16, 8, 4])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_of_every_width(mode, width, schedule):
    """The control operand as __shfl_*_sync make it: segments of `width` lanes, clamped at their ends."""
    generator = np.random.default_rng(width)
    c = (32 - width) << 8 | (0 if mode == "up" else 31)
    a = generator.integers(0, 2**32, 128, dtype=np.uint32)
    for distance in (0, 1, 2, width - 1, width // 2, 31):
        blank = {"value": np.zeros(128, np.uint32), "valid": np.zeros(128, np.uint32)}
        body = f"shfl.sync.{mode}.b32 %r_value|%p1, %a, {distance}, {c}, -1; selp.b32 %r_valid, 1, 0, %p1;"
        found = run(body, {"a": a} | blank, schedule=schedule)
        for i, name in enumerate(blank):
            expected = by_warp(lambda lane, v, i=i, d=distance: shuffled(mode, lane, v, d, c)[i], a)
            np.testing.assert_array_equal(found[name], expected, err_msg=f"{name} at {distance}")


@settings(max_examples=15)
@given(seeds)
def test_shuffles_with_any_control_and_a_source_for_each_lane(seed):
    generator = np.random.default_rng(seed)
    mode = str(generator.choice(["up", "down", "bfly", "idx"]))
    a, b, c = (generator.integers(0, 2**32, 128, dtype=np.uint32) for _ in range(3))
    c &= np.uint32(0x1F1F)
    body = f"shfl.sync.{mode}.b32 %r_value, %a, %b, %c, -1;"
    found = run(body, {"a": a, "b": b, "c": c, "value": np.zeros(128, np.uint32)})
    expected = by_warp(lambda lane, x, y, z: shuffled(mode, lane, x, y[lane], z[lane])[0], a, b, c)
    np.testing.assert_array_equal(found["value"], expected)


VOTES = {
    "all": lambda told: all(told),
    "any": lambda told: any(told),
    "uni": lambda told: len(set(told)) == 1,
}


def random_members(generator: np.random.Generator) -> tuple[int, np.ndarray]:
    """A mask with at least one lane, and which of 128 threads are in it."""
    mask = int(generator.integers(1, 2**32))
    if generator.integers(3) == 0:
        mask = FULL
    return mask, np.array([mask >> t % 32 & 1 for t in range(128)], bool)


def only_members(body: str, mask: int) -> str:
    """`body` for the lanes in `mask`; the others leave zeros."""
    return f"""
        mov.u32 %r20, %lanemask_eq;
        and.b32 %r20, %r20, {mask};
        setp.eq.u32 %p9, %r20, 0;
        @%p9 bra SKIP;
        {body}
        SKIP:
    """


@settings(max_examples=20)
@given(seeds)
def test_votes_count_the_members_only(seed):
    generator = np.random.default_rng(seed)
    mask, members = random_members(generator)
    a = generator.integers(0, generator.choice([1, 2, 20]) + 1, 128, dtype=np.uint32)
    a = 1 - a.clip(0, 1) if generator.integers(2) else a
    blank = {name: np.zeros(128, np.uint32) for name in ("all", "any", "uni", "ballot")}
    lines = [f"vote.sync.{v}.pred %p2, %p1, {mask}; selp.b32 %r_{v}, 1, 0, %p2;" for v in VOTES]
    body = only_members(
        "setp.ne.u32 %p1, %a, 0;" + "".join(lines) + f"vote.sync.ballot.b32 %r_ballot, %p1, {mask};", mask
    )
    zero = "".join(f"mov.u32 %r_{name}, 0;" for name in blank)
    found = run(zero + body, {"a": a} | blank)

    def told(values: list[int]) -> list[bool]:
        return [v != 0 for lane, v in enumerate(values) if mask >> lane & 1]

    for name, vote in VOTES.items():
        expected = by_warp(lambda lane, v, vote=vote: vote(told(v)), a) * members
        np.testing.assert_array_equal(found[name], expected, err_msg=f"{name} of {mask:#x}")
    ballot = by_warp(lambda lane, v: sum((x != 0) << i for i, x in enumerate(v)) & mask, a) * members
    np.testing.assert_array_equal(found["ballot"], ballot)


@pytest.mark.parametrize("bits", [32, 64])
@settings(max_examples=10)
@given(seed=seeds)
def test_matches_name_the_members_with_the_same_value(bits, seed):
    generator = np.random.default_rng(seed)
    mask, members = random_members(generator)
    a = generator.integers(0, generator.choice([1, 2, 5]), 128, dtype=f"u{bits // 8}")
    a[64:] += np.array(1, a.dtype) << np.array(bits - 1, a.dtype)  # a difference in the highest bit alone
    blank = {name: np.zeros(128, np.uint32) for name in ("some", "every", "equal")}
    body = only_members(
        f"match.any.sync.b{bits} %r_some, %a, {mask};"
        f"match.all.sync.b{bits} %r_every|%p1, %a, {mask}; selp.b32 %r_equal, 1, 0, %p1;",
        mask,
    )
    found = run("".join(f"mov.u32 %r_{name}, 0;" for name in blank) + body, {"a": a} | blank)

    def same(values: list[int], value: int) -> int:
        return sum((x == value) << i for i, x in enumerate(values)) & mask

    some = by_warp(lambda lane, v: same(v, v[lane]), a) * members
    equal = by_warp(lambda lane, v: same(v, v[lane]) == mask, a) * members
    np.testing.assert_array_equal(found["some"], some)
    np.testing.assert_array_equal(found["equal"], equal)
    np.testing.assert_array_equal(found["every"], equal * np.uint32(mask))


REDUCTIONS = {
    "add.u32": lambda v: sum(v),
    "add.s32": lambda v: sum(v),
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda v: min(signed(x) for x in v),
    "max.s32": lambda v: max(signed(x) for x in v),
    "and.b32": lambda v: int(np.bitwise_and.reduce(v)),
    "or.b32": lambda v: int(np.bitwise_or.reduce(v)),
    "xor.b32": lambda v: int(np.bitwise_xor.reduce(v)),
}


def signed(x: int) -> int:
    return x - 2**32 if x >> 31 else x


@pytest.mark.parametrize("operation", REDUCTIONS)
@settings(max_examples=5)
@given(seed=seeds)
def test_sums_over_the_members_of_a_warp(operation, seed):
    generator = np.random.default_rng(seed)
    mask, members = random_members(generator)
    a = generator.integers(0, 2**32, 128, dtype=np.uint32)
    body = "mov.u32 %r_out, 0;" + only_members(f"redux.sync.{operation} %r_out, %a, {mask};", mask)
    found = run(body, {"a": a, "out": np.zeros(128, np.uint32)})["out"]
    expected = by_warp(
        lambda lane, v: REDUCTIONS[operation]([x for i, x in enumerate(v) if mask >> i & 1]) % 2**32, a
    )
    np.testing.assert_array_equal(found, expected * members)


AWKWARD_FLOATS = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 2.0**-149, -3.0]


def extreme(values: list[float], smallest: bool, absolute: bool, keeps_nan: bool) -> float:
    """The least or greatest of some floats; +0 is greater than -0."""
    values = [abs(v) if absolute else v for v in values]
    numbers = [v for v in values if v == v]
    if not numbers or (keeps_nan and len(numbers) < len(values)):
        return np.nan
    return sorted(numbers, key=lambda v: (v, np.copysign(1, v)))[0 if smallest else -1]


@pytest.mark.parametrize("qualifiers", ["", ".abs", ".NaN", ".abs.NaN"])
@pytest.mark.parametrize("operation", ["min", "max"])
@settings(max_examples=8)
@given(seed=seeds)
def test_the_least_and_the_greatest_float_of_the_members_of_a_warp(operation, qualifiers, seed):
    generator = np.random.default_rng(seed)
    mask, members = random_members(generator)
    a = generator.choice(np.array(AWKWARD_FLOATS, "f4")[: generator.integers(1, 10)], 128)
    operation_ = f"redux.sync.{operation}{qualifiers}.f32 %f1, %f0, {mask}; mov.b32 %r_out, %f1;"
    body = "mov.u32 %r_out, 0; mov.b32 %f0, %a;" + only_members(operation_, mask)
    found = run(body, {"a": a.view(np.uint32), "out": np.zeros(128, np.uint32)})["out"]

    def one(lane: int, values: list[int]) -> int:
        given = [float(np.uint32(x).view("f4")) for i, x in enumerate(values) if mask >> i & 1]
        result = extreme(given, operation == "min", "abs" in qualifiers, "NaN" in qualifiers)
        return 0x7FFFFFFF if np.isnan(result) else int(np.float32(result).view(np.uint32))

    expected = by_warp(one, a.view(np.uint32))
    np.testing.assert_array_equal(found, np.where(members, expected, 0))


@settings(max_examples=10)
@given(seed=seeds)
def test_one_lane_of_the_members_is_elected_and_all_of_them_are_told(seed):
    mask, members = random_members(np.random.default_rng(seed))
    elect = f"elect.sync %r1|%p5, {mask}; selp.u32 %r2, 256, 0, %p5; or.b32 %r_out, %r1, %r2;"
    found = run("mov.u32 %r_out, 99;" + only_members(elect, mask), {"out": np.zeros(128, np.uint32)})["out"]
    leader = next(lane for lane in range(32) if mask >> lane & 1)
    expected = np.where(np.arange(128) % 32 == leader, 256 + leader, np.where(members, leader, 99))
    np.testing.assert_array_equal(found, expected)


OUT = {"out": np.zeros(128, np.uint32)}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_the_active_mask_is_that_of_the_lanes_in_the_same_branch(schedule):
    body = """
        and.b32 %r1, %tid, 3;
        setp.eq.u32 %p1, %r1, 3;
        @%p1 bra OTHER;
        activemask.b32 %r_out;
        bra END;
    OTHER:
        activemask.b32 %r_out;
    END:
    """
    found = run(body, OUT, schedule=schedule)["out"].reshape(-1, 4)
    assert (found[:, 3] == 0x88888888).all()
    assert (found[:, :3] == 0x77777777).all()


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_lanes_meet_although_they_come_through_both_arms_of_a_branch(schedule):
    """Odd lanes bring their number plus 100, even ones their number, through a shuffle of their own each."""
    body = """
        and.b32 %r1, %tid, 1;
        and.b32 %r2, %tid, 31;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra ODD;
        shfl.sync.bfly.b32 %r_out, %r2, 1, 31, -1;
        bra END;
    ODD:
        add.u32 %r3, %r2, 100;
        shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
        add.u32 %r_out, %r4, 1000;
    END:
    """
    lane = np.arange(128) % 32
    expected = np.where(lane % 2, lane - 1 + 1000, lane + 1 + 100)
    np.testing.assert_array_equal(run(body, OUT, schedule=schedule)["out"], expected)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_parts_of_a_warp_meet_on_their_own(schedule):
    """Each quarter counts its odd threads with its own mask; the quarters come one by one through a loop."""
    body = """
        and.b32 %r1, %tid, 31;
        shr.u32 %r2, %r1, 3;
        mul.lo.u32 %r3, %r2, 8;
        mov.u32 %r4, 255;
        shl.b32 %r4, %r4, %r3;
        and.b32 %r5, %r1, 1;
        setp.ne.u32 %p1, %r5, 0;
        mov.u32 %r6, 0;
    LOOP:
        setp.ge.u32 %p2, %r6, %r2;
        @%p2 bra MEET;
        add.u32 %r6, %r6, 1;
        bra LOOP;
    MEET:
        vote.sync.ballot.b32 %r_out, %p1, %r4;
    """
    expected = [0xAA << 8 * (t % 32 // 8) for t in range(128)]
    np.testing.assert_array_equal(run(body, OUT, schedule=schedule)["out"], expected)


def test_parts_of_a_warp_meet_through_different_arms_with_different_masks():
    """Lanes 0 to 15 take one arm and 16 to 31 the other; each half sums with its own mask."""
    body = """
        and.b32 %r1, %tid, 31;
        setp.ge.u32 %p1, %r1, 16;
        @%p1 bra UPPER;
        redux.sync.add.u32 %r_out, %r1, 0xffff;
        bra END;
    UPPER:
        redux.sync.add.u32 %r_out, %r1, 0xffff0000;
    END:
    """
    expected = [sum(range(16)) if t % 32 < 16 else sum(range(16, 32)) for t in range(128)]
    np.testing.assert_array_equal(run(body, OUT)["out"], expected)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_warp_barrier_makes_a_write_seen(schedule):
    """Lane l writes before the barrier and lane l ^ 16, which comes late, reads after it."""
    body = (
        """
        and.b32 %r1, %tid, 16;
        mov.u32 %r2, tile;
        shl.b32 %r3, %tid, 2;
        add.u32 %r4, %r2, %r3;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra LATE;
        st.shared.u32 [%r4], %at;
        bar.warp.sync -1;
        bra READ;
    LATE:
        add.u32 %r5, %at, 0;
        st.shared.u32 [%r4], %r5;
        bar.warp.sync -1;
    READ:
        xor.b32 %r6, %r3, 64;
        add.u32 %r6, %r2, %r6;
        ld.shared.u32 %r7, [%r6];
    """
        + element("out")
        + "st.global.u32 [%rd31], %r7;"
    )
    text = kernel(body, outside=".shared .align 4 .b8 tile[256];")
    found = launch(text, OUT, 2, 64, schedule=schedule)["out"]
    np.testing.assert_array_equal(found, np.arange(128) ^ 16)


def test_exited_lanes_are_not_waited_for():
    """Lanes 8 and up leave; the full mask then stands for the lanes that are left."""
    body = f"""
        and.b32 %r1, %tid, 31;
        setp.ge.u32 %p1, %r1, 8;
        @%p1 ret;
        setp.ge.u32 %p2, %r1, 0;
        vote.sync.ballot.b32 %r2, %p2, -1;
        {element("out")}
        st.global.u32 [%rd31], %r2;
    """
    found = launch(kernel(body), OUT, 2, 64)["out"].reshape(4, 32)
    assert (found[:, :8] == 0xFF).all()
    assert (found[:, 8:] == 0).all()


def test_a_partial_last_warp_votes_with_the_lanes_that_exist():
    body = f"""
        setp.ge.u32 %p1, %tid, 0;
        vote.sync.ballot.b32 %r1, %p1, -1;
        {element("out")}
        st.global.u32 [%rd31], %r1;
    """
    found = launch(kernel(body), {"out": np.zeros(80, np.uint32)}, 2, 40)["out"].reshape(2, 40)
    assert (found[:, :32] == FULL).all()
    assert (found[:, 32:] == 0xFF).all()


def test_one_member_is_elected_and_told_so():
    body = """
        mov.u32 %r_leader, 0;
        mov.u32 %r_me, 0;
        and.b32 %r1, %tid, 31;
        setp.lt.u32 %p2, %r1, 5;
        @%p2 bra SKIP;
        elect.sync %r_leader|%p1, 0xffffffe0;
        selp.b32 %r_me, 1, 0, %p1;
        SKIP:
    """
    found = run(body, {"leader": np.zeros(128, np.uint32), "me": np.zeros(128, np.uint32)})
    lane = np.arange(128) % 32
    np.testing.assert_array_equal(found["leader"], np.where(lane < 5, 0, 5))
    np.testing.assert_array_equal(found["me"], lane == 5)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_members_that_never_come_are_a_message(schedule):
    """The odd lanes wait for all 32 at a shuffle, the even ones at a barrier of the block."""
    body = """
        and.b32 %r1, %tid, 1;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra ODD;
        bar.sync 0;
        bra END;
    ODD:
        shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
    END:
    """
    with pytest.raises(simt.DivergentBarrier) as fault:
        launch(kernel(body), {"out": OUT["out"]}, 1, 32, schedule=schedule)
    assert str(fault.value).splitlines() == [
        "Divergent barrier in kernel snippet",
        "thread (0, 0, 0) of block (0, 0, 0) waits at this barrier for threads that never come to it.",
        "15 more threads did so.",
        "Every thread that the operation waits for must reach it: move it out of the branch.",
    ]


def test_two_kinds_of_operations_do_not_meet():
    """Half of the warp shuffles and half of it votes, both with the full mask."""
    body = """
        and.b32 %r1, %tid, 1;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra ODD;
        shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;
        bra END;
    ODD:
        vote.sync.ballot.b32 %r2, %p1, -1;
    END:
    """
    with pytest.raises(simt.DivergentBarrier) as fault:
        launch(kernel(body), {"out": OUT["out"]}, 1, 32)
    assert "waits at this warp operation for threads that never come to it." in str(fault.value)
