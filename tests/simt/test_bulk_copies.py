"""Bulk copies: what arrives, when it arrives, how a wrong one is told, and reductions against one number at a
time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import simt
from gpulab.simulator.simt.errors import Endless, Misaligned, OutOfBounds, WrongBarrier

from .launching import SCHEDULES, element, kernel, launch

EVERY = SCHEDULES | {"backwards": simt.BACKWARDS, "two teams": simt.two_teams(5)}
schedules = pytest.mark.parametrize("schedule", EVERY.values(), ids=EVERY)

SHARED = ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 tile[1024];"
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd1], [%rd2], %r1, [%rd0];"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%rd1], %r1;"
WAIT = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%rd0], 0; @!%p1 bra WAIT;"
COMMIT = "cp.async.bulk.commit_group;"
OWN = "mad.wide.s32 %rd4, %tid, 4, %rd1;"
IN = np.arange(1, 513, dtype=np.int32)


def by_first(what: str, label: str) -> str:
    """The first thread does `what`, then the block meets."""
    return f"setp.ne.s32 %p0, %tid, 0;\n@%p0 bra {label};\n{what}\n{label}:\nbar.sync 0;\n"


def program(sends: str, then: str, nbytes: int = 1024, expects: int | None = None) -> str:
    """Block i of 256 threads copies the i-th `nbytes` of `in` to shared memory, and does something."""
    expects = nbytes if expects is None else expects
    body = f"""
    mov.u64 %rd0, bar;
    mov.u64 %rd1, tile;
    mov.u32 %r1, {nbytes};
    mad.wide.s32 %rd2, %r30, {nbytes}, %in;
    mad.wide.s32 %rd3, %r30, {nbytes}, %out;
    {by_first("mbarrier.init.shared.b64 [%rd0], 1;", "READY")}
    {by_first(f"mbarrier.arrive.expect_tx.shared.b64 _, [%rd0], {expects};" + sends, "SENT")}
    {OWN}
    {then}
    """
    return kernel(body, "in out", declarations=SHARED)


def run(text: str, schedule: simt.Schedule = simt.LOCKSTEP, block: int = 256, **more) -> np.ndarray:
    arrays = {"in": IN, "out": np.full(512, -7, np.int32)} | more
    return launch(text, arrays, grid=2, block=block, schedule=schedule)["out"]


PUT = f"ld.shared.b32 %r2, [%rd4]; {element('out')} st.global.b32 [%rd31], %r2;"


@schedules
def test_what_was_sent_is_there_when_the_phase_is_over(schedule) -> None:
    assert np.array_equal(run(program(LOAD, WAIT + PUT), schedule), IN)


@schedules
def test_what_is_stored_is_there_when_the_kernel_is_over(schedule) -> None:
    change = "ld.shared.b32 %r2, [%rd4]; add.s32 %r2, %r2, 5; st.shared.b32 [%rd4], %r2; bar.sync 0;"
    send = by_first(STORE + COMMIT + "cp.async.bulk.wait_group 0;", "DONE")
    assert np.array_equal(run(program(LOAD, WAIT + change + send), schedule), IN + 5)


def test_what_is_read_before_the_wait_is_old_in_lockstep_and_new_when_copies_are_early() -> None:
    text = program(LOAD, "bar.sync 0;" + PUT)
    assert (run(text) == -1).all()
    assert np.array_equal(run(text, simt.BACKWARDS), IN)
    found = run(text, simt.two_teams(3))
    assert np.array_equal(found, run(text, simt.two_teams(3)))  # the same in every run


@pytest.mark.parametrize("wait, kept", [("cp.async.bulk.wait_group.read 0;", True), ("", False)])
def test_a_source_may_change_once_it_is_known_to_have_been_read(wait, kept) -> None:
    fill = "mov.u32 %r2, 1; st.shared.b32 [%rd4], %r2; bar.sync 0;"
    send = by_first(STORE + COMMIT + wait, "DONE")
    spoil = "mov.u32 %r2, 2; st.shared.b32 [%rd4], %r2;"
    found = run(program(LOAD, WAIT + fill + send + spoil))
    assert (found == (1 if kept else 2)).all()


def test_a_wait_for_reads_is_no_wait_for_writes() -> None:
    def text(wait: str) -> str:
        look = "ld.global.b32 %r3, [%rd3]; st.global.b32 [%rd3+1020], %r3;"
        return program(LOAD, WAIT + by_first(STORE.replace("%r1", "16") + COMMIT + wait + look, "DONE"))

    assert run(text("cp.async.bulk.wait_group.read 0;"))[255] == -7
    assert run(text("cp.async.bulk.wait_group 0;"))[255] == 1


def test_a_wait_leaves_the_last_groups_alone() -> None:
    half = [STORE.replace("%r1", "16"), STORE.replace("%r1", "16").replace("[%rd3]", "[%rd3+16]")]
    look = "ld.global.b32 %r3, [%rd3]; ld.global.b32 %r4, [%rd3+16]; st.global.v2.b32 [%rd3+512], {%r3, %r4};"
    send = half[0] + COMMIT + half[1] + COMMIT + "cp.async.bulk.wait_group 1;" + look
    assert run(program(LOAD, WAIT + by_first(send, "DONE")))[128:130].tolist() == [1, -7]


def test_threads_send_different_numbers_of_bytes() -> None:
    """Thread i of four sends 16 · (i + 1) bytes, from the same place to places of its own."""
    send = """
    setp.ge.s32 %p2, %tid, 4;
    @%p2 bra SENT4;
    shl.b32 %r1, %tid, 4;
    add.s32 %r1, %r1, 16;
    mad.wide.s32 %rd5, %tid, 64, %rd1;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%rd5], [%rd2], %r1, [%rd0];
    SENT4:
    """
    text = program("", send + WAIT + PUT, expects=16 + 32 + 48 + 64)
    found = run(text)[:64].reshape(4, 16)
    for i in range(4):
        assert np.array_equal(found[i, : 4 * (i + 1)], IN[: 4 * (i + 1)])
        assert (found[i, 4 * (i + 1) :] == -1).all()


# ---- reductions ----------------------------------------------------------------------------------

BITS = {"u32": 32, "s32": 32, "u64": 64, "s64": 64, "b32": 32, "b64": 64}
CHOICES = [(op, t) for op in ("add", "min", "max") for t in ("u32", "s32", "u64", "s64")]
CHOICES += [(op, t) for op in ("and", "or", "xor") for t in ("b32", "b64")]
CHOICES += [("inc", "u32"), ("dec", "u32")]


def one(op: str, old: int, new: int, bits: int) -> int:
    """What a reduction makes of two numbers."""
    match op:
        case "add":
            total = (old + new) % (1 << bits)
            return total
        case "min":
            return min(old, new)
        case "max":
            return max(old, new)
        case "and":
            return old & new
        case "or":
            return old | new
        case "xor":
            return old ^ new
        case "inc":
            return 0 if old >= new else old + 1
        case "dec":
            return new if old == 0 or old > new else old - 1
    raise AssertionError(op)


@pytest.mark.parametrize("op, type_", CHOICES)
@given(st.integers(0, 2**32 - 1))
def test_a_reduction_combines_what_comes_with_what_is_there(op, type_, seed) -> None:
    bits, signed = BITS[type_], type_[0] == "s"
    dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    draw = np.random.default_rng(seed)
    low, high = (-4, 5) if signed and seed % 2 else (0, 9)
    new = draw.integers(low, high, 1024 // dtype.itemsize).astype(dtype)
    old = draw.integers(low, high, 1024 // dtype.itemsize).astype(dtype)
    send = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{type_} [%rd3], [%rd1], %r1;"
    text = program(LOAD, WAIT + by_first(send + COMMIT + "cp.async.bulk.wait_group 0;", "DONE"))
    found = launch(text, {"in": new, "out": old}, block=32)["out"]
    mask = (1 << bits) - 1
    wanted = [one(op, int(a), int(b), bits) & mask for a, b in zip(old, new, strict=True)]
    assert [int(x) & mask for x in found] == wanted


@pytest.mark.parametrize("type_, dtype", [("f32", "f4"), ("f64", "f8"), ("f16", "f2"), ("bf16", "u2")])
def test_floating_point_numbers_are_added_in_their_own_precision(type_, dtype) -> None:
    draw = np.random.default_rng(0)
    new, old = (draw.normal(size=1024 // np.dtype(dtype).itemsize).astype("f4") for _ in range(2))
    if type_ == "bf16":
        new, old = ((x.view("u4") >> 16).astype("u2") for x in (new, old))
        exact = (new.astype("u4") << 16).view("f4") + (old.astype("u4") << 16).view("f4")
        bits = exact.view("u4").astype("u8")
        wanted = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")
    else:
        new, old = new.astype(dtype), old.astype(dtype)
        wanted = old + new
    suffix = f"noftz.{type_}" if type_ in ("f16", "bf16") else type_
    send = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{suffix} [%rd3], [%rd1], %r1;"
    text = program(LOAD, WAIT + by_first(send + COMMIT + "cp.async.bulk.wait_group 0;", "DONE"))
    assert np.array_equal(launch(text, {"in": new, "out": old}, block=32)["out"], wanted)


def test_two_reductions_to_one_place_both_count() -> None:
    send = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%rd1], %r1;"
    text = program(LOAD, WAIT + by_first(send + COMMIT + "cp.async.bulk.wait_group 0;", "DONE"))
    found = run(text, **{"out": np.zeros(512, np.int32)})
    assert np.array_equal(found[:256], IN[:256] + IN[256:])


# ---- wrong use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sends, nbytes, error, words",
    [
        (LOAD.replace("%r1", "1000"), 1024, Misaligned, "of 1,000 bytes; the size must be a multiple of 16"),
        (LOAD.replace("[%rd1]", "[%rd1+8]"), 512, Misaligned, "shared address 0x8, which is no multiple of 16"),
        (LOAD.replace("[%rd2]", "[%rd2+8]"), 512, Misaligned, "which is no multiple of 16"),
        (LOAD.replace("%r1", "2048"), 1024, OutOfBounds, "2,048 bytes at byte 0 of shared memory; the block"),
        (LOAD.replace("[%rd2]", "[%rd2+1536]"), 1024, OutOfBounds, "in and runs 512 bytes behind its end"),
        (LOAD.replace("[%rd0]", "[%rd0-8]"), 512, WrongBarrier, "complete at an mbarrier that is not init"),
        (LOAD.replace("[%rd0]", "[%rd0+4]"), 512, Misaligned, "names an mbarrier at the shared address 0x4"),
    ],
    ids=["size", "shared address", "global address", "shared size", "global size", "no mbarrier", "mbarrier"],
)  # fmt: skip
def test_a_wrong_copy_is_told_with_the_rule_and_the_value(sends, nbytes, error, words) -> None:
    with pytest.raises(error) as caught:
        run(program(sends, WAIT + PUT, nbytes), block=32)
    assert words in str(caught.value)


@schedules
def test_bytes_that_never_come_are_told_of(schedule) -> None:
    with pytest.raises(Endless) as caught:
        run(program(LOAD, WAIT + PUT, expects=1536), schedule)
    assert "the mbarrier bar for the end of the phase of parity 0" in str(caught.value)
    assert "lacks 512 bytes that were announced" in str(caught.value)
    assert "as many bytes as expect_tx announces" in str(caught.value)


@pytest.mark.parametrize("expects, there", [(1024, True), (512, False)])
def test_too_few_announced_bytes_end_the_phase_before_all_are_there(expects, there) -> None:
    first = LOAD.replace("%r1", "512")
    second = first.replace("[%rd1]", "[%rd1+512]").replace("[%rd2]", "[%rd2+512]")
    found = run(program(first + second, WAIT + PUT, expects=expects)).reshape(2, 2, 128)
    wanted = IN.reshape(2, 2, 128)
    assert np.array_equal(found[:, 0], wanted[:, 0])
    assert np.array_equal(found[:, 1], wanted[:, 1] if there else np.full((2, 128), -1))


@schedules
def test_a_hang_of_two_roles_tells_who_waits_where_for_what(schedule) -> None:
    """The first warp waits for bytes of which half never come, the second for an arrival of the first."""
    body = f"""
    mov.u64 %rd0, bar; mov.u64 %rd1, tile; mov.u64 %rd6, empty;
    mov.u32 %r1, 512;
    {by_first("mbarrier.init.shared.b64 [%rd0], 1; mbarrier.init.shared.b64 [%rd6], 32;", "READY")}
    setp.ge.u32 %p2, %tid, 32;
    @%p2 bra SECOND;
    setp.ne.u32 %p3, %tid, 0;
    @%p3 bra FIRST;
    mbarrier.arrive.expect_tx.shared.b64 _, [%rd0], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd1], [%in], %r1, [%rd0];
    FIRST:
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%rd0], 0; @!%p1 bra WAIT;
    mbarrier.arrive.shared.b64 _, [%rd6];
    bra DONE;
    SECOND:
    OTHER: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%rd6], 0; @!%p4 bra OTHER;
    DONE:
    """
    text = kernel(body, "in out", declarations=SHARED + " .shared .align 8 .b64 empty;")
    with pytest.raises(Endless) as caught:
        launch(text, {"in": IN, "out": IN}, block=64, schedule=schedule)
    words = str(caught.value)
    assert "the mbarrier bar for the end of the phase of parity 0, which lacks 512 bytes that were" in words
    assert "thread (32, 0, 0) of block (0, 0, 0) (and 31 more) waits at the mbarrier empty" in words
    assert "which lacks 32 of 32 arrivals" in words
