"""Clusters: who is in one, its barrier, the shared memory of its blocks, and what blocks send each other."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.simulator import ptx, simt
from gpulab.simulator.observe import Races
from gpulab.simulator.simt.errors import DivergentBarrier, Endless, OutOfBounds

from .engines import each_engine as each_engine
from .launching import SCHEDULES, element, kernel, launch

EVERY = SCHEDULES | {"backwards": simt.BACKWARDS, "two teams": simt.two_teams(5)}
schedules = pytest.mark.parametrize("schedule", EVERY.values(), ids=EVERY)

SHARED = ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 tile[512];"
SYNC = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
PUT = element("out") + "st.global.b32 [%rd31], %r2;"
# The block after mine in the cluster, and its tile.
NEXT = """
mov.u32 %r0, %cluster_ctarank;
mov.u32 %r1, %cluster_nctarank;
add.u32 %r3, %r0, 1;
rem.u32 %r3, %r3, %r1;
mov.u64 %rd0, tile;
cvt.u32.u64 %r4, %rd0;
mapa.shared::cluster.u32 %r5, %r4, %r3;
shl.b32 %r6, %tid, 2;
add.u32 %r7, %r4, %r6;
add.u32 %r8, %r5, %r6;
"""


def run(body: str, blocks: int = 8, threads: int = 32, cluster=(4, 1, 1), **options) -> np.ndarray:
    text = kernel(body, declarations=SHARED)
    out = np.full(blocks * threads, -7, np.int32)
    return launch(text, {"out": out}, blocks, threads, cluster=cluster, **options)["out"]


# ---- who is where --------------------------------------------------------------------------------

NUMBERS = [
    "cluster_ctarank",
    "cluster_nctarank",
    "clusterid.x",
    "clusterid.y",
    "clusterid.z",
    "nclusterid.x",
    "nclusterid.y",
    "nclusterid.z",
    "cluster_ctaid.x",
    "cluster_ctaid.y",
    "cluster_ctaid.z",
    "cluster_nctaid.x",
    "cluster_nctaid.y",
    "cluster_nctaid.z",
    "ctaid.x",
    "ctaid.y",
    "ctaid.z",
]


@schedules
@pytest.mark.parametrize("grid, cluster", [((4, 6, 2), (2, 3, 1)), ((4, 6, 2), (4, 1, 2)), ((3, 2, 2), None)])
def test_every_block_knows_its_place(grid, cluster, schedule) -> None:
    lines = [
        "mov.u32 %r1, %nctaid.x; mov.u32 %r2, %nctaid.y;",
        "mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z;",
    ]
    lines.append("mad.lo.u32 %r4, %r4, %r2, %r3; mad.lo.u32 %r4, %r4, %r1, %r30;")
    lines.append(f"mul.lo.u32 %r4, %r4, {len(NUMBERS)}; mad.wide.u32 %rd1, %r4, 4, %out;")
    for i, name in enumerate(NUMBERS):
        lines.append(f"mov.u32 %r5, %{name}; st.global.b32 [%rd1+{4 * i}], %r5;")
    out = np.zeros((grid[2], grid[1], grid[0], len(NUMBERS)), np.int32)
    found = launch(kernel("\n".join(lines)), {"out": out}, grid, 1, cluster=cluster, schedule=schedule)["out"]
    shape = cluster or (1, 1, 1)
    for block in np.ndindex(grid):
        inside = [b % c for b, c in zip(block, shape, strict=True)]
        rank = inside[0] + shape[0] * (inside[1] + shape[1] * inside[2])
        wanted = [rank, int(np.prod(shape)), *(b // c for b, c in zip(block, shape, strict=True))]
        wanted += [g // c for g, c in zip(grid, shape, strict=True)] + [*inside, *shape, *block]
        assert found[block[2], block[1], block[0]].tolist() == wanted


@pytest.mark.parametrize(
    "cluster, directive, wanted", [(None, "", 0), ((1, 1, 1), "", 1), (None, "2, 1, 1", 1)]
)
def test_a_kernel_knows_whether_clusters_were_asked_for(cluster, directive, wanted) -> None:
    text = kernel("mov.pred %p1, %is_explicit_cluster; selp.b32 %r2, 1, 0, %p1;" + PUT)
    if directive:
        text = text.replace(") {", f")\n.explicitcluster\n.reqnctapercluster {directive}\n{{", 1)
    found = launch(text, {"out": np.zeros(64, np.int32)}, 2, 32, cluster=cluster)["out"]
    assert (found == wanted).all()


# ---- shared memory of others ---------------------------------------------------------------------

SHARE = "mad.lo.u32 %r9, %r0, 100, %tid; st.shared.u32 [%r7], %r9;"


def neighbours(blocks: int = 8, size: int = 4, threads: int = 32) -> np.ndarray:
    rank = np.arange(blocks) % size
    return ((rank + 1) % size * 100)[:, None] + np.arange(threads)


@schedules
@pytest.mark.parametrize("blocks, size", [(8, 4), (16, 16), (6, 2)])
def test_a_block_reads_what_another_has_written_before_the_barrier(schedule, blocks, size) -> None:
    read = "ld.shared::cluster.u32 %r2, [%r8];"
    found = run(NEXT + SHARE + SYNC + read + PUT + SYNC, blocks, cluster=(size, 1, 1), schedule=schedule)
    assert np.array_equal(found.reshape(blocks, -1), neighbours(blocks, size))


@schedules
def test_generic_addresses_reach_other_blocks(schedule) -> None:
    read = """
    cvta.shared.u64 %rd1, %rd0;
    mapa.u64 %rd2, %rd1, %r3;
    mad.wide.u32 %rd2, %tid, 4, %rd2;
    ld.u32 %r2, [%rd2];
    """
    found = run(NEXT + SHARE + SYNC + read + PUT + SYNC, schedule=schedule)
    assert np.array_equal(found.reshape(8, -1), neighbours())


def test_an_address_tells_whose_it_is_and_whether_it_is_ones_own() -> None:
    body = (
        NEXT
        + """
    getctarank.shared::cluster.u32 %r10, %r5;
    cvta.shared.u64 %rd1, %rd0;
    mapa.u64 %rd2, %rd1, %r3;
    isspacep.shared::cta %p1, %rd1;
    isspacep.shared::cta %p2, %rd2;
    isspacep.shared::cluster %p3, %rd2;
    selp.b32 %r11, 1000, 0, %p1;
    selp.b32 %r12, 100, 0, %p2;
    selp.b32 %r13, 10000, 0, %p3;
    add.u32 %r2, %r10, %r11; add.u32 %r2, %r2, %r12; add.u32 %r2, %r2, %r13;
    """
    )
    found = run(body + PUT).reshape(8, -1)
    assert np.array_equal(found[:, 0], 11000 + (np.arange(8) % 4 + 1) % 4)


@schedules
def test_atomics_of_all_blocks_meet_in_the_first_one(schedule) -> None:
    body = (
        NEXT
        + f"""
    mov.u32 %r9, 0; st.shared.u32 [%r7], %r9;
    {SYNC}
    mapa.shared::cluster.u32 %r5, %r4, 0;
    mov.u32 %r9, 1;
    atom.shared::cluster.add.u32 %r10, [%r5], 1;
    red.shared::cluster.add.u32 [%r5+4], %r9;
    {SYNC}
    ld.shared::cluster.v2.u32 {{%r2, %r3}}, [%r5];
    add.u32 %r2, %r2, %r3;
    {PUT}
    {SYNC}
    """
    )
    assert (run(body, schedule=schedule) == 256).all()


@schedules
def test_stores_reach_other_blocks(schedule) -> None:
    body = NEXT + "mad.lo.u32 %r9, %r0, 100, %tid; st.shared::cluster.u32 [%r8], %r9;" + SYNC
    found = run(body + "ld.shared.u32 %r2, [%r7];" + PUT, schedule=schedule).reshape(8, -1)
    assert np.array_equal(found[:, 0], (np.arange(8) % 4 + 3) % 4 * 100)


def test_clearing_a_bit_of_an_address_leads_to_the_first_block_of_a_pair() -> None:
    """Compilers do so for Blackwell's pairs, and libraries for their barriers."""
    body = (
        NEXT + SHARE + SYNC + "and.b32 %r8, %r7, 0xFEFFFFFF; ld.shared::cluster.u32 %r2, [%r8];" + PUT + SYNC
    )
    found = run(body, cluster=(2, 1, 1)).reshape(8, -1)
    assert (found == np.arange(32)).all()


# ---- barriers ------------------------------------------------------------------------------------


@schedules
def test_the_barrier_serves_phase_after_phase_and_work_goes_on_between_arrival_and_wait(schedule) -> None:
    body = (
        NEXT
        + """
    mov.u32 %r10, 0;
    mov.u32 %r2, 0;
    st.shared.u32 [%r7], %r10;
    barrier.cluster.arrive.release;
    AGAIN:
    add.u32 %r10, %r10, 1;
    barrier.cluster.wait.acquire;
    ld.shared::cluster.u32 %r9, [%r8];
    add.u32 %r2, %r2, %r9;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.shared.u32 [%r7], %r10;
    barrier.cluster.arrive;
    setp.lt.u32 %p1, %r10, 5;
    @%p1 bra AGAIN;
    barrier.cluster.wait;
    """
    )
    assert (run(body + PUT, schedule=schedule) == 0 + 1 + 2 + 3 + 4).all()


@schedules
def test_threads_that_have_returned_are_not_waited_for(schedule) -> None:
    body = NEXT + "mov.u32 %r2, 5; setp.ge.u32 %p1, %tid, 40; @%p1 bra END;" + SYNC + PUT + "END:"
    assert (run(body, threads=64, schedule=schedule).reshape(8, 64)[:, :40] == 5).all()


@pytest.mark.parametrize(
    "body, words",
    [
        ("barrier.cluster.wait;", "waits at the barrier of its cluster before it has arrived"),
        ("barrier.cluster.arrive;" * 2, "arrives at the barrier of its cluster again before it has waited"),
    ],
)
def test_arrivals_and_waits_take_turns(body, words) -> None:
    with pytest.raises(DivergentBarrier, match=words):
        run(body)


def test_a_barrier_that_one_block_does_not_reach_is_told() -> None:
    """The threads of the first block wait for an mbarrier that nobody arrives at."""
    body = (
        NEXT
        + """
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra MEET;
    mov.u64 %rd1, bar;
    mbarrier.init.shared.b64 [%rd1], 1;
    W: mbarrier.try_wait.parity.shared.b64 %p2, [%rd1], 0; @!%p2 bra W;
    MEET:
    """
    )
    with pytest.raises(Endless) as caught:
        run(body + SYNC, blocks=4, threads=1)
    assert "3 threads wait at a barrier of the cluster" in str(caught.value)
    assert "lacks 1 of 1 arrival." in str(caught.value)


# ---- faults --------------------------------------------------------------------------------------


@schedules
def test_shared_memory_of_a_block_that_has_left_is_gone(schedule) -> None:
    body = (
        NEXT
        + SHARE
        + SYNC
        + """
    setp.eq.u32 %p1, %r0, 1;
    @%p1 bra END;
    mov.u32 %r9, 0;
    DELAY: add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 50; @%p1 bra DELAY;
    ld.shared::cluster.u32 %r2, [%r8];
    """
    )
    # The second block returns at once; the first one reads from it.
    with pytest.raises(OutOfBounds, match="whose threads have all returned: its shared memory is gone"):
        run(body + PUT + "END:", schedule=schedule)


@pytest.mark.parametrize(
    "body, words",
    [
        ("mapa.shared::cluster.u32 %r5, %r4, 4; ld.shared::cluster.u32 %r2, [%r5];", "block 4 of its cluster, which has 4"),
        ("ld.shared.u32 %r2, [%r8];", "with an instruction that reaches its own block's memory only"),
        ("ld.shared::cluster.u32 %r2, [%r8+512];", "which has"),
    ],
    ids=["no such block", "not one's own", "too far"],
)  # fmt: skip
def test_an_address_that_leads_nowhere_is_told(body, words) -> None:
    with pytest.raises(OutOfBounds, match=words):
        run(NEXT + SHARE + SYNC + body + SYNC)


# ---- mbarriers and what is sent ------------------------------------------------------------------

BAR = "mov.u64 %rd1, bar; cvt.u32.u64 %r14, %rd1; mapa.shared::cluster.u32 %r15, %r14, %r3;"
INIT = "setp.ne.u32 %p0, %tid, 0; @%p0 bra READY; mbarrier.init.shared.b64 [%r14], {}; READY:"
WAIT = "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r14], 0; @!%p1 bra WAIT;"


@schedules
def test_threads_arrive_at_the_barrier_of_another_block(schedule) -> None:
    store = "mad.lo.u32 %r9, %r0, 100, %tid; st.shared::cluster.u32 [%r8], %r9;"
    arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r15];"
    body = (
        NEXT + BAR + INIT.format(32) + SYNC + store + arrive + WAIT + "ld.shared.u32 %r2, [%r7];" + PUT + SYNC
    )
    found = run(body, schedule=schedule).reshape(8, -1)
    assert np.array_equal(found[:, 0], (np.arange(8) % 4 + 3) % 4 * 100)


EXPECT = "@%p0 bra EXPECTED; mbarrier.arrive.expect_tx.shared.b64 _, [%r14], {}; EXPECTED:"


@schedules
@pytest.mark.parametrize(
    "send, wanted",
    [
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r8], %r9, [%r15];", lambda r: r * 100),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], %r9, [%r15];",
            lambda r: r * 100 + 1,
        ),
    ],
    ids=["st.async", "red.async"],
)  # fmt: skip
def test_what_is_sent_to_another_block_is_there_when_its_barrier_says_so(schedule, send, wanted) -> None:
    begin = "mov.u32 %r9, 1; st.shared.u32 [%r7], %r9;"
    body = NEXT + BAR + INIT.format(1) + begin + EXPECT.format(128) + SYNC
    body += "mul.lo.u32 %r9, %r0, 100;" + send + WAIT + "ld.shared.u32 %r2, [%r7];" + PUT + SYNC
    found = run(body, schedule=schedule).reshape(8, -1)
    sender = (np.arange(8) % 4 + 3) % 4
    assert np.array_equal(found, np.broadcast_to(wanted(sender)[:, None], found.shape))


@schedules
def test_vectors_are_sent_to_another_block(schedule) -> None:
    send = """
    shl.b32 %r6, %tid, 4; add.u32 %r8, %r5, %r6;
    mov.u32 %r9, %tid; mul.lo.u32 %r10, %r0, 100;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r8], {%r9, %r10, %r9, %r10}, [%r15];
    """
    body = NEXT + BAR + INIT.format(1) + EXPECT.format(512) + SYNC + send + WAIT
    read = "add.u32 %r7, %r4, %r6; ld.shared.v4.u32 {%r16, %r17, %r18, %r2}, [%r7]; add.u32 %r2, %r2, %r18;"
    found = run(body + read + PUT + SYNC, schedule=schedule).reshape(8, -1)
    assert np.array_equal(found, ((np.arange(8) % 4 + 3) % 4 * 100)[:, None] + np.arange(32))


@schedules
def test_a_block_copies_its_shared_memory_to_another_one(schedule) -> None:
    send = """
    @%p0 bra SENT;
    mov.u32 %r16, 128;
    fence.proxy.async.shared::cta;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5+128], [%r4], %r16, [%r15];
    SENT:
    """
    body = NEXT + BAR + INIT.format(1) + SHARE + EXPECT.format(128) + SYNC + send + WAIT
    found = run(body + "ld.shared.u32 %r2, [%r7+128];" + PUT + SYNC, schedule=schedule).reshape(8, -1)
    assert np.array_equal(found[:, 3], (np.arange(8) % 4 + 3) % 4 * 100 + 3)


@schedules
def test_a_multicast_reaches_the_blocks_of_its_mask(schedule) -> None:
    """Blocks 0 and 1 of four send 128 bytes each: the first to blocks 0 and 2, the second to all."""
    body = (
        NEXT
        + BAR
        + INIT.format(1)
        + """
    mov.u32 %r9, -1; st.shared.u32 [%r7], %r9; st.shared.u32 [%r7+128], %r9;
    and.b32 %r10, %r0, 1;
    setp.eq.u32 %p3, %r10, 0;
    selp.b32 %r11, 256, 128, %p3;
    @%p0 bra EXPECTED;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r14], %r11;
    EXPECTED:
    """
        + SYNC
        + """
    setp.gt.u32 %p4, %r0, 1;
    or.pred %p4, %p4, %p0;
    @%p4 bra SENT;
    setp.eq.u32 %p5, %r0, 0;
    selp.b32 %r12, 5, 15, %p5;
    cvt.u16.u32 %h1, %r12;
    mov.u32 %r16, 128;
    shl.b32 %r17, %r0, 7;
    add.u32 %r17, %r17, %r4;
    mad.wide.u32 %rd5, %r0, 128, %in;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r17], [%rd5], %r16, [%r14], %h1;
    SENT:
    """
        + WAIT
        + "ld.shared.u32 %r2, [%r7]; ld.shared.u32 %r18, [%r7+128]; mad.lo.u32 %r2, %r18, 1000, %r2;"
        + PUT
        + SYNC
    )
    text = kernel(body, "in out", declarations=SHARED)
    given = np.arange(1, 65, dtype=np.int32)
    out = np.zeros(128, np.int32)
    found = launch(text, {"in": given, "out": out}, 4, 32, cluster=(4, 1, 1), schedule=schedule)["out"]
    first, second = given[:32], given[32:]
    wanted = [second * 1000 + (first if rank % 2 == 0 else -1) for rank in range(4)]
    assert np.array_equal(found.reshape(4, 32), wanted)


# ---- races ---------------------------------------------------------------------------------------


def races(body: str, schedule: simt.Schedule) -> bool:
    watcher = Races()
    run(body, schedule=schedule, observers=[watcher])
    return bool(watcher.findings)


@schedules
@pytest.mark.parametrize(
    "between, found",
    [
        (SYNC, False),
        ("", True),
        ("bar.sync 0;", True),
        ("barrier.cluster.arrive.relaxed; barrier.cluster.wait;", True),
    ],
    ids=["cluster", "nothing", "block", "relaxed"],
)
def test_blocks_race_unless_the_cluster_meets(schedule, between, found) -> None:
    body = NEXT + SHARE + between + "ld.shared::cluster.u32 %r2, [%r8];" + PUT
    # A block that returns takes its memory along, so all meet once more, which orders nothing before.
    assert races(body + "barrier.cluster.arrive.relaxed; barrier.cluster.wait;", schedule) == found


@schedules
def test_what_a_block_knows_goes_on_to_others_through_its_own_barriers(schedule) -> None:
    """One warp writes, the block meets, and the other warp arrives at the barrier of another block."""
    body = (
        NEXT
        + BAR
        + INIT.format(32)
        + SYNC
        + """
    setp.ge.u32 %p3, %tid, 32;
    @%p3 bra WRITTEN;
    st.shared.u32 [%r7], %tid;
    WRITTEN:
    bar.sync 0;
    setp.lt.u32 %p4, %tid, 32;
    @%p4 bra ARRIVED;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r15];
    ARRIVED:
    """
        + WAIT
        + """
    add.u32 %r19, %r0, 3; rem.u32 %r19, %r19, 4;
    mapa.shared::cluster.u32 %r5, %r4, %r19;
    ld.shared::cluster.u32 %r2, [%r5];
    """
        + SYNC
    )
    watcher = Races()
    run(body, threads=64, schedule=schedule, observers=[watcher])
    assert not watcher.findings


@schedules
def test_copies_and_matrices_stay_in_their_own_block(schedule) -> None:
    body = (
        NEXT
        + """
    shl.b32 %r9, %tid, 4;
    add.u32 %r9, %r9, %r4;
    mul.lo.u32 %r10, %r30, 512;
    mad.wide.u32 %rd5, %tid, 16, %in;
    cvt.u64.u32 %rd6, %r10;
    add.u64 %rd5, %rd5, %rd6;
    cp.async.cg.shared.global [%r9], [%rd5], 16;
    cp.async.wait_all;
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r9];
    """
        + PUT
    )
    text = kernel(body, "in out", declarations=SHARED)
    given = np.arange(1024, dtype=np.int32)
    arrays = {"in": given, "out": np.zeros(256, np.int32)}
    found = launch(text, arrays, 8, 32, cluster=(4, 1, 1), schedule=schedule)["out"]
    assert np.array_equal(found.reshape(8, 32), given.reshape(8, 128)[:, :32])


def test_only_whole_clusters_run() -> None:
    body = NEXT + "mov.u32 %r2, 1;" + PUT
    text = kernel(body, declarations=SHARED)
    out = np.zeros(12 * 32, np.int32)
    found = launch(text, {"out": out}, 12, 32, cluster=(4, 1, 1), blocks=np.array([5]))["out"]
    assert np.array_equal(found.reshape(12, 32)[:, 0], [0] * 4 + [1] * 4 + [0] * 4)


def test_a_kernel_is_compiled_for_its_clusters() -> None:
    text = kernel("ret;").replace(") {", ")\n.reqnctapercluster 2, 3\n{", 1)
    assert simt.load(ptx.parse(text)).cluster == (2, 3, 1)
