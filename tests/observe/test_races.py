"""Planted races in shared memory and their mended twins: two source lines are named, or nothing."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from gpulab import cuda
from gpulab.simulator import device, simt
from gpulab.simulator.observe import Race, Races
from gpulab.simulator.observe.race import WRITE, Touch
from gpulab.simulator.simt.errors import source_text
from tests.simt.launching import element, kernel, launch

SCHEDULES = [simt.LOCKSTEP, simt.warp_serial(0), simt.warp_serial(5)]
schedules = pytest.mark.parametrize("schedule", SCHEDULES, ids=["lockstep", "serial 0", "serial 5"])


def races(configured: Any, *args: Any, schedule: simt.Schedule = simt.LOCKSTEP) -> list[Race]:
    """What is found in one launch of a numba kernel."""
    watcher = Races()
    simulated = device.current()
    with simulated.observed(lambda _: watcher), simulated.using(schedule=schedule):
        configured(*args)
    return watcher.findings


def lines(found: list[Race]) -> set[frozenset[str]]:
    """The pairs of source lines, as sets of texts."""
    return {frozenset(source_text(touch.location) for touch in (r.first, r.second)) for r in found}


def order(race: Race) -> tuple[str, ...]:
    """The two source lines in the order in which a thread comes to them, with no barrier between."""
    return tuple(source_text(touch.location) for touch in (race.first, race.second))


SIDE = 8


@cache
def matmul(first: bool, second: bool) -> Any:
    """A tiled product with or without the barrier behind the loads and the one at the end of a panel."""

    @cuda.jit
    def tiled(a, b, c):
        ta = cuda.shared.array((SIDE, SIDE), np.float32)
        tb = cuda.shared.array((SIDE, SIDE), np.float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        s = np.float32(0)
        for p in range(a.shape[1] // SIDE):
            ta[ty, tx] = a[y, p * SIDE + tx]
            tb[ty, tx] = b[p * SIDE + ty, x]
            if first:
                cuda.syncthreads()
            for k in range(SIDE):
                s += ta[ty, k] * tb[k, tx]
            if second:
                cuda.syncthreads()
        c[y, x] = s

    return tiled


STORES = {"ta[ty, tx] = a[y, p * SIDE + tx]", "tb[ty, tx] = b[p * SIDE + ty, x]"}
READS = "s += ta[ty, k] * tb[k, tx]"


@schedules
@pytest.mark.parametrize(
    ("first", "second"),
    [(False, True), (True, False), (False, False)],
    ids=["no first", "no second", "neither"],
)
def test_a_matrix_product_without_one_of_its_barriers(first, second, schedule):
    """The stores of the tiles and the line that reads them, which order ever the simulator took."""
    a = np.ones((16, 16), np.float32)
    found = races(matmul(first, second)[(2, 2), (SIDE, SIDE)], a, a, np.zeros_like(a), schedule=schedule)
    assert lines(found) == {frozenset({store, READS}) for store in STORES}
    if first != second:  # the cure belongs behind the loads, or behind the sums at the end of a panel
        assert {order(race)[0] for race in found} == ({READS} if first else STORES)
    assert any(not race.within_a_warp for race in found), "a row of tb belongs to both warps"


@schedules
def test_a_matrix_product_with_both_barriers(schedule):
    a = np.random.default_rng(0).random((16, 16), np.float32)
    c = np.zeros_like(a)
    assert races(matmul(True, True)[(2, 2), (SIDE, SIDE)], a, a, c, schedule=schedule) == []
    np.testing.assert_allclose(c, a @ a, rtol=1e-5)


@cache
def ladder(synchronised: bool) -> Any:
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
            if synchronised:
                cuda.syncthreads()
            step //= 2
        if t == 0:
            out[cuda.blockIdx.x] = tile[0]

    return block_sum


@schedules
def test_a_ladder_of_sums_needs_its_barrier_on_every_rung(schedule):
    x = np.ones(256, np.float32)
    found = races(ladder(False)[2, 128], x, np.zeros(2, np.float32), schedule=schedule)
    assert frozenset({"tile[t] += tile[t + step]"}) in lines(found)
    assert any(not race.within_a_warp for race in found)
    out = np.zeros(2, np.float32)
    assert races(ladder(True)[2, 128], x, out, schedule=schedule) == []
    assert out.tolist() == [128, 128]


@cache
def mirror(barrier: str) -> Any:
    """Each thread writes its element and reads that of thread n − 1 − t."""
    whole_block, warp = barrier == "block", barrier == "warp"

    @cuda.jit
    def turned(x, out):
        tile = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        n = cuda.blockDim.x
        tile[t] = x[t]
        if whole_block:
            cuda.syncthreads()
        if warp:
            cuda.syncwarp()
        out[t] = tile[n - 1 - t]

    return turned


@schedules
@pytest.mark.parametrize("barrier", ["none", "warp"])
def test_across_warps_only_the_barrier_of_the_block_orders(barrier, schedule):
    x = np.arange(64, dtype=np.float32)
    (race,) = races(mirror(barrier)[1, 64], x, np.zeros_like(x), schedule=schedule)
    assert order(race) == ("tile[t] = x[t]", "out[t] = tile[n - 1 - t]")
    assert not race.within_a_warp
    assert f"Usual cure: cuda.syncthreads() after line {race.first.line}." in str(race)
    assert races(mirror("block")[1, 64], x, np.zeros_like(x), schedule=schedule) == []


@schedules
def test_within_a_warp_its_own_barrier_is_enough(schedule):
    x = np.arange(32, dtype=np.float32)
    (race,) = races(mirror("none")[1, 32], x, np.zeros_like(x), schedule=schedule)
    assert race.within_a_warp
    assert "Usual cure: cuda.syncwarp() after line" in str(race)
    assert "; cuda.syncthreads() if other warps share the array, too." in str(race)
    assert races(mirror("warp")[1, 32], x, np.zeros_like(x), schedule=schedule) == []


def test_the_message_names_lines_threads_and_the_array():
    x = np.arange(64, dtype=np.float32)
    (race,) = races(mirror("none")[2, 64], x, np.zeros_like(x))
    store, load = race.first.line, race.second.line
    assert load > store
    lead, one, two, between, cure = str(race).splitlines()
    assert lead == "Race in kernel turned, shared array `tile`"
    assert one.startswith(f"    {store:4} │ tile[t] = x[t]")
    assert two.startswith(f"    {load:4} │ out[t] = tile[n - 1 - t]")
    writer, reader = race.first.linear_thread, race.second.linear_thread
    assert writer == 63 - reader
    assert one.endswith(f"thread {writer} of block 0 writes tile[{writer}] = {writer}.0")
    assert two.endswith(f"thread {reader} of block 0 reads tile[{writer}] = {writer}.0")
    assert between == f"No barrier between line {store} and line {load}."
    assert cure == f"Usual cure: cuda.syncthreads() after line {store}."


@cache
def shift(synchronised: bool) -> Any:
    @cuda.jit
    def shifted(x):
        tile = cuda.shared.array(65, np.float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        cuda.syncthreads()
        v = tile[(t + 1) % 64]
        if synchronised:
            cuda.syncthreads()
        tile[t] = v + 1
        cuda.syncthreads()
        x[t] = tile[t]

    return shifted


@schedules
def test_a_write_after_a_read_by_another_thread(schedule):
    x = np.arange(64, dtype=np.float32)
    found = races(shift(False)[1, 64], x.copy(), schedule=schedule)
    assert lines(found) == {frozenset({"v = tile[(t + 1) % 64]", "tile[t] = v + 1"})}
    y = x.copy()
    assert races(shift(True)[1, 64], y, schedule=schedule) == []
    np.testing.assert_array_equal(y, np.roll(x, -1) + 1)


@cache
def pairs(synchronised: bool) -> Any:
    @cuda.jit
    def summed(x):
        tile = cuda.shared.array(32, np.float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        cuda.syncwarp()
        v = tile[t]
        w = tile[t ^ 1]
        if synchronised:
            cuda.syncwarp()
        tile[t] = v + w
        cuda.syncwarp()
        x[t] = tile[t]

    return summed


@schedules
def test_a_word_that_its_owner_reads_first_and_a_neighbour_reads_too(schedule):
    """The owner's write races with the neighbour's read, though the first reader was the owner itself."""
    x = np.arange(32, dtype=np.float32)
    found = races(pairs(False)[1, 32], x.copy(), schedule=schedule)
    assert lines(found) == {frozenset({"w = tile[t ^ 1]", "tile[t] = v + w"})}
    assert found[0].within_a_warp
    assert races(pairs(True)[1, 32], x.copy(), schedule=schedule) == []


@cache
def histogram(atomic: bool) -> Any:
    @cuda.jit
    def counted(x, out):
        bins = cuda.shared.array(4, np.int32)
        t = cuda.threadIdx.x
        if t < 4:
            bins[t] = 0
        cuda.syncthreads()
        if atomic:
            cuda.atomic.add(bins, x[t] % 4, 1)
        else:
            bins[x[t] % 4] += 1
        cuda.syncthreads()
        if t < 4:
            out[t] = bins[t]

    return counted


@schedules
def test_a_histogram_without_atomics(schedule):
    x, out = np.arange(96, dtype=np.int32), np.zeros(4, np.int32)
    found = races(histogram(False)[1, 96], x, out, schedule=schedule)
    assert lines(found) == {frozenset({"bins[x[t] % 4] += 1"})}
    assert races(histogram(True)[1, 96], x, out, schedule=schedule) == []
    assert out.tolist() == [24] * 4


@cache
def flag(same: bool) -> Any:
    @cuda.jit
    def raised(out):
        up = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        if same:
            up[0] = 7
        else:
            up[0] = t
        cuda.syncthreads()
        out[t] = up[0]

    return raised


@schedules
def test_two_threads_that_write_one_word(schedule):
    """Different values are a race of a line with itself; the same value does no harm."""
    out = np.zeros(64, np.int32)
    found = races(flag(False)[1, 64], out, schedule=schedule)
    assert lines(found) == {frozenset({"up[0] = t"})}
    assert "CUDA leaves open which one stays" in str(found[0])
    assert races(flag(True)[1, 64], out, schedule=schedule) == []
    assert (out == 7).all()


@cache
def buffers(number: int) -> Any:
    """Each round writes a buffer, passes one barrier and reads it: one buffer is too few, two are enough."""

    @cuda.jit
    def turned(x, out):
        tile = cuda.shared.array((number, 64), np.float32)
        t = cuda.threadIdx.x
        s = np.float32(0)
        for k in range(4):
            tile[k % number, t] = x[k * 64 + t]
            cuda.syncthreads()
            s += tile[k % number, 63 - t]
        out[t] = s

    return turned


@schedules
def test_one_barrier_a_round_needs_two_buffers(schedule):
    x, out = np.arange(256, dtype=np.float32), np.zeros(64, np.float32)
    (race,) = races(buffers(1)[1, 64], x, out, schedule=schedule)
    assert order(race) == ("s += tile[k % number, 63 - t]", "tile[k % number, t] = x[k * 64 + t]")
    assert races(buffers(2)[1, 64], x, out, schedule=schedule) == []


@schedules
def test_the_cure_of_a_race_round_a_loop_stands_behind_its_end(schedule):
    """The read of one round comes first, the write of the next one after it."""
    x, out = np.arange(256, dtype=np.float32), np.zeros(64, np.float32)
    (race,) = races(buffers(1)[1, 64], x, out, schedule=schedule)
    earlier, later = race.first.line, race.second.line
    assert earlier > later
    assert str(race).splitlines()[-2:] == [
        f"No barrier between line {earlier} and line {later} of the next pass through the loop.",
        f"Usual cure: cuda.syncthreads() after line {earlier}.",
    ]


@cache
def counter(synchronised: bool) -> Any:
    @cuda.jit
    def counted(out):
        n = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        if t == 0:
            n[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(n, 0, 1)
        if synchronised:
            cuda.syncthreads()
        out[t] = n[0]

    return counted


@schedules
def test_a_plain_read_of_what_others_update_atomically(schedule):
    out = np.zeros(64, np.int32)
    found = races(counter(False)[1, 64], out, schedule=schedule)
    assert lines(found) == {frozenset({"cuda.atomic.add(n, 0, 1)", "out[t] = n[0]"})}
    assert "atomically updates" in str(found[0])
    assert races(counter(True)[1, 64], out, schedule=schedule) == []
    assert (out == 64).all()


@cache
def dynamic(synchronised: bool) -> Any:
    @cuda.jit
    def turned(x):
        tile = cuda.shared.array(0, np.float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        if synchronised:
            cuda.syncthreads()
        x[t] = tile[63 - t]

    return turned


@schedules
def test_dynamic_shared_memory_is_watched_too(schedule):
    x = np.arange(64, dtype=np.float32)
    found = races(dynamic(False)[1, 64, 0, 256], x.copy(), schedule=schedule)
    assert lines(found) == {frozenset({"tile[t] = x[t]", "x[t] = tile[63 - t]"})}
    assert races(dynamic(True)[1, 64, 0, 256], x.copy(), schedule=schedule) == []


@cuda.jit
def neighbouring_bytes(x):
    tile = cuda.shared.array(64, np.int8)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    x[t] = tile[t] + 1


@schedules
def test_neighbouring_bytes_of_one_word_are_apart(schedule):
    assert races(neighbouring_bytes[1, 64], np.zeros(64, np.int8), schedule=schedule) == []


@cuda.jit
def neighbouring_doubles(x, bad):
    tile = cuda.shared.array(65, np.float64)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    if bad:
        x[t] = tile[t + 1]
    else:
        x[t] = tile[t]


@schedules
def test_a_double_is_two_words_of_one_thread(schedule):
    assert races(neighbouring_doubles[1, 64], np.zeros(64), False, schedule=schedule) == []
    found = races(neighbouring_doubles[1, 64], np.zeros(64), True, schedule=schedule)
    assert lines(found) == {frozenset({"tile[t] = x[t]", "x[t] = tile[t + 1]"})}


@cuda.jit
def alone(out):
    tile = cuda.shared.array(1, np.int32)
    if cuda.threadIdx.x == 0:
        tile[0] = cuda.blockIdx.x
        out[cuda.blockIdx.x] = tile[0]


@schedules
def test_blocks_have_shared_memory_of_their_own(schedule):
    """Every block's thread 0 writes element 0 and its thread 0 reads it: nobody else does."""
    assert races(alone[40, 32], np.zeros(40, np.int32), schedule=schedule) == []


@cuda.jit
def some(out):
    tile = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    tile[t] = t
    if cuda.blockIdx.x % 2 == 0:
        cuda.syncthreads()
    out[cuda.blockIdx.x, t] = tile[63 - t]


@schedules
def test_a_barrier_orders_the_blocks_that_pass_it_and_no_others(schedule):
    """Odd blocks skip the barrier between the write and the read."""
    found = races(some[4, 64], np.zeros((4, 64), np.int32), schedule=schedule)
    assert found
    assert all(race.block[0] % 2 == 1 for race in found)
    assert races(some[1, 64], np.zeros((1, 64), np.int32), schedule=schedule) == []


def test_without_source_lines_instructions_are_told_apart():
    """PTX without .loc: the race is found, and the message has no line to show."""
    body = f"""
        mov.u64 %rd1, tile; mad.wide.u32 %rd2, %tid, 4, %rd1;
        st.shared.u32 [%rd2], %tid;
        ld.shared.u32 %r1, [%rd1+128];
        {element("out")} st.global.u32 [%rd31], %r1;
    """
    watcher = Races()
    text = kernel(body, outside=".shared .align 4 .b8 tile[256];")
    launch(text, {"out": np.zeros(64, np.int32)}, 1, 64, observers=(watcher,))
    (race,) = watcher.findings
    assert {race.first.linear_thread, *race.element} == {32}
    assert str(race).startswith("Race in kernel snippet, shared array\n")


# ---- where the cure belongs


@cache
def first_warp_writes() -> Any:
    @cuda.jit
    def broadcast(x, out):
        tile = cuda.shared.array(32, np.float32)
        t = cuda.threadIdx.x
        if t < 32:
            for k in range(int(x[t])):
                tile[t] = x[t] + k
        out[t] = tile[t % 32]

    return broadcast


@cache
def both_in_branches() -> Any:
    @cuda.jit
    def hand_over(x, out):
        tile = cuda.shared.array(32, np.float32)
        t = cuda.threadIdx.x
        if t < 32:
            for k in range(int(x[t])):
                tile[t] = x[t] + k
        if t >= 32:
            for _ in range(int(x[t])):
                out[t] += tile[t - 32]

    return hand_over


@cache
def counts_in_bins(in_loop: bool) -> Any:
    @cuda.jit
    def counted(x, out, n):
        bins = cuda.shared.array(4, np.int32)
        t = cuda.threadIdx.x
        if t < 4:
            bins[t] = 0
        cuda.syncthreads()
        if in_loop:
            for k in range(t, n, 64):
                bins[x[k]] += 1
        else:
            bins[x[t]] += 1
        cuda.syncthreads()
        if t < 4:
            out[t] = bins[t]

    return counted


def cure(race: Race) -> str:
    return str(race).splitlines()[-1]


@schedules
def test_a_barrier_is_never_put_into_a_branch_that_only_some_threads_take(schedule):
    x = np.full(64, 2, np.float32)
    found = races(first_warp_writes()[1, 64], x, np.zeros_like(x), schedule=schedule)
    load = next(r.second for r in found if "out[t]" in source_text(r.second.location))
    assert {cure(race) for race in found} == {f"Usual cure: cuda.syncthreads() before line {load.line}."}


@schedules
def test_where_both_lines_are_in_branches_the_barrier_belongs_between_them(schedule):
    x = np.full(64, 2, np.float32)
    found = races(both_in_branches()[1, 64], x, np.zeros_like(x), schedule=schedule)
    assert {cure(race) for race in found} == {
        "Usual cure: cuda.syncthreads() between the two, outside any branch, where all threads of the block "
        "come by."
    }


@schedules
def test_a_barrier_belongs_behind_an_inner_loop_and_not_into_it(schedule):
    a = np.ones((16, 16), np.float32)
    found = races(matmul(True, False)[(2, 2), (SIDE, SIDE)], a, a, np.zeros_like(a), schedule=schedule)
    assert found
    assert all(f"() before line {race.second.line}" in cure(race) for race in found)


@schedules
def test_a_ladder_needs_its_barrier_at_the_end_of_each_rung(schedule):
    x = np.ones(256, np.float32)
    found = races(ladder(False)[2, 128], x, np.zeros(2, np.float32), schedule=schedule)
    own = [race for race in found if race.first.line == race.second.line and not race.within_a_warp]
    assert own
    for race in own:
        assert cure(race).startswith(
            "Usual cure: cuda.syncthreads() at the end of each pass through the loop"
        )


@schedules
@pytest.mark.parametrize("in_loop", [False, True], ids=["once", "in a loop"])
def test_threads_that_add_to_one_element_need_an_atomic(in_loop, schedule):
    x, out = np.arange(64, dtype=np.int64) % 4, np.zeros(4, np.int32)
    found = races(counts_in_bins(in_loop)[1, 64], x, out, 64, schedule=schedule)
    own = [race for race in found if race.first.line == race.second.line]
    assert own
    assert all("an atomic" in cure(race) for race in own)
    if not in_loop:
        assert all("sync" not in cure(race) for race in own)


def test_of_threads_that_all_write_one_element_in_a_loop_one_should():
    one, other = (Touch(None, (0, 0, 0), (lane, 0, 0), lane, WRITE) for lane in (0, 1))
    race = Race("sum_rows", "global", one, other, (0,), 4, "out", repeated=True)
    assert cure(race).startswith("Usual cure: let one thread write the element")


@schedules
@pytest.mark.parametrize(
    "other, between, found", [(1, "", True), (1, "bar.warp.sync -1;", False), (32, "", False)]
)
def test_volatile_accesses_race_within_their_warp_only(other, between, found, schedule):
    """The last two of four warps write their words and read those of others, all volatile, in both blocks."""
    body = f"""
        setp.lt.u32 %p1, %tid, 64; @%p1 bra DONE;
        mov.u32 %r1, words; shl.b32 %r2, %tid, 2; xor.b32 %r3, %r2, {4 * other};
        add.u32 %r2, %r2, %r1; add.u32 %r3, %r3, %r1;
        st.volatile.shared.u32 [%r2], %tid;
        {between}
        ld.volatile.shared.u32 %r4, [%r3];
        DONE:"""
    text = kernel(body, declarations=".shared .align 4 .b32 words[128];")
    watcher = Races()
    launch(text, {"out": np.zeros(1, np.int32)}, 2, 128, schedule=schedule, observers=[watcher])
    assert [race.within_a_warp for race in watcher.findings] == [True] * found


@schedules
@pytest.mark.parametrize("waits", [True, False], ids=["waited for", "not waited for"])
def test_what_a_thread_wrote_before_its_commit_comes_before_those_who_wait_for_it(waits, schedule):
    """In each block thread 37 writes a word and commits to an mbarrier; the other threads read the word."""
    text = kernel(
        f"""
        mov.u32 %r1, bar;
        setp.ne.u32 %p1, %tid, 0; @%p1 bra MEET;
        mbarrier.init.shared.b64 [%r1], 1;
        MEET: bar.sync 0;
        setp.ne.u32 %p1, %tid, 37; @%p1 bra WAIT;
        st.shared.u32 [word], %tid;
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
        bra DONE;
        WAIT: {"mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0; @!%p2 bra WAIT;" if waits else ""}
        ld.shared.u32 %r2, [word];
        DONE:""",
        declarations=".shared .align 8 .b64 bar;\n.shared .align 4 .b32 word;",
    ).replace(".target sm_80", ".target sm_100a")
    watcher = Races()
    pairs = {"cluster": (2, 1, 1), "schedule": schedule, "observers": [watcher]}
    launch(text, {"out": np.zeros(1, np.int32)}, 4, 64, **pairs)
    assert bool(watcher.findings) == (not waits)
