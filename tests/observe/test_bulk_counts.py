"""What bulk copies and clusters move, counted against copies told one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import simt
from gpulab.simulator.observe import Counters
from gpulab.simulator.observe.patterns import box_sectors
from gpulab.simulator.simt.tensor_maps import decode, encode, encode_tiled

from ..simt.launching import kernel, launch
from ..simt.test_clusters import BAR, EXPECT, INIT, NEXT, PUT, SHARED, SYNC, WAIT
from ..simt.test_tensor_copies import box_at, contents, extent, load, program, store
from ..simt.test_tensor_maps import one_by_one, tiled_maps


def row(counts, kind: str) -> dict[str, int]:
    return {c: counts.total(c, kind) for c in ("requests", "bytes", "sectors", "ideal_sectors")}


@given(tiled_maps(), st.data(), st.booleans())
def test_a_box_counts_the_bytes_and_sectors_of_its_elements(map_, data, loads) -> None:
    point = [data.draw(st.integers(-4, 9)) for _ in range(map_.rank)]
    tensor, shared = contents(map_, 0)
    memory, watcher = simt.Memory(), Counters()
    there = memory.allocate(tensor.nbytes, "tensor")
    described = np.frombuffer(encode(replace(map_, address=there.address)), np.uint8)
    arrays = {"map": described, "tensor": there.address, "at_": np.array(point, np.int32), "data": shared}
    text = program(map_, load(map_) if loads else store(map_))
    launch(text, arrays, 1, 128, memory=memory, observers=[watcher])
    size = map_.type.itemsize
    elements = [a for a, inside, _ in one_by_one(replace(map_, address=0), point, 0) if inside]
    assert extent(map_) == tensor.nbytes
    assert row(watcher.counts, "bulk_load" if loads else "bulk_store") == {
        "requests": 1,
        "bytes": size * len(elements),
        "sectors": len({a // 32 for a in elements}),
        "ideal_sectors": -(-size * len(elements) // 32),
    }


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 4, 8, 16]), st.booleans(), st.booleans())
def test_sectors_of_many_copies_are_those_of_each(seed, size, alike, whole) -> None:
    draw = np.random.default_rng(seed)
    address = draw.integers(0, 40, (1 if alike else 5, 7)) * size + draw.integers(0, 4, (5, 1)) * 32
    inside = None if whole else draw.random((5, 7)) < 0.6
    there = np.ones((5, 7), bool) if inside is None else inside
    nbytes = [int(on.sum()) * size for on in there]
    sectors = [len({int(a) // 32 for a in row[on]}) for row, on in zip(address, there, strict=True)]
    assert box_sectors(address, size, inside) == (sum(nbytes), sum(sectors), sum(-(-n // 32) for n in nbytes))


def test_prefetches_are_counted_and_change_nothing() -> None:
    map_ = decode(encode_tiled("f32", 0, (40, 20), (160,), (32, 8), span=128))
    tensor, shared = contents(map_, 0)
    memory, watcher = simt.Memory(), Counters()
    there = memory.allocate(tensor.nbytes, "tensor")
    described = np.frombuffer(encode(replace(map_, address=there.address)), np.uint8)
    arrays = {"map": described, "tensor": there.address, "at_": np.array([16, 2], np.int32), "data": shared}
    send = f"""
    cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%map, {box_at(2)}];
    mov.u32 %r1, 256;
    cp.async.bulk.prefetch.L2.global [%tensor], %r1;
    """
    found = launch(program(map_, send), arrays, 1, 128, memory=memory, observers=[watcher])
    assert np.array_equal(found["data"], shared)
    # 8 rows of 24 floats inside, and 256 bytes in a row
    wanted = {"requests": 2, "bytes": 8 * 96 + 256, "sectors": 8 * 3 + 8, "ideal_sectors": 8 * 3 + 8}
    assert row(watcher.counts, "bulk_prefetch") == wanted


def test_a_multicast_is_read_once() -> None:
    """Block 0 sends 128 bytes to all four blocks of its cluster; the second cluster does the same."""
    body = (
        NEXT
        + BAR
        + INIT.format(1)
        + EXPECT.format(128)
        + SYNC
        + """
    setp.ne.u32 %p4, %r0, 0;
    or.pred %p4, %p4, %p0;
    @%p4 bra SENT;
    mov.b16 %h1, 15;
    mov.u32 %r16, 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4], [%in], %r16, [%r14], %h1;
    SENT:
    """
        + WAIT
        + "ld.shared.u32 %r2, [%r7];"
        + PUT
        + SYNC
    )
    watcher = Counters()
    arrays = {"in": np.arange(32, dtype=np.int32), "out": np.zeros(256, np.int32)}
    text = kernel(body, "in out", declarations=SHARED)
    found = launch(text, arrays, 8, 32, cluster=(4, 1, 1), observers=[watcher])["out"]
    assert np.array_equal(found.reshape(8, 32), np.tile(np.arange(32), (8, 1)))
    assert row(watcher.counts, "bulk_load") == {"requests": 2, "bytes": 256, "sectors": 8, "ideal_sectors": 8}
    assert watcher.counts.total("bytes", space="cluster") == 0
    assert watcher.counts.most_loaded == 128  # of the block that sends; the others get them


@pytest.mark.parametrize(
    "access, kind, moved",
    [
        ("ld.shared::cluster.u32 %r2, [%r8];", "load", 8 * 32 * 4),
        ("mov.b64 %rd9, 0; st.shared::cluster.v2.b64 [%r5], {%rd9, %rd9};", "store", 8 * 32 * 16),
        ("atom.shared::cluster.add.u32 %r2, [%r8], 1;", "atomic", 8 * 32 * 4),
    ],
)
def test_accesses_of_other_blocks_have_rows_of_their_own(access, kind, moved) -> None:
    watcher = Counters()
    body = NEXT + "mov.u32 %r2, 0; st.shared.u32 [%r7], %r2;" + SYNC + access + SYNC + PUT
    out = {"out": np.zeros(256, np.int32)}
    launch(kernel(body, declarations=SHARED), out, 8, 32, cluster=(4, 1, 1), observers=[watcher])
    counts = watcher.counts
    assert counts.total("bytes", kind, "cluster") == moved
    assert counts.total("requests", kind, "cluster") == 8
    assert counts.total("bytes", kind, "shared") == (8 * 32 * 4 if kind == "store" else 0)


def test_waits_for_the_cluster_are_no_barriers_of_the_block() -> None:
    watcher = Counters()
    out = {"out": np.zeros(256, np.int32)}
    text = kernel(NEXT + SYNC + "bar.sync 0;" + SYNC, declarations=SHARED)
    launch(text, out, 8, 64, cluster=(4, 1, 1), observers=[watcher])
    assert watcher.counts.total("warps", "cluster_barrier") == 2 * 16
    assert watcher.counts.total("warps", "barrier") == 16
    kinds = dict(zip([i.opcode for i in watcher.counts.instructions], watcher.counts.kinds, strict=True))
    assert kinds["barrier.cluster.arrive.aligned"] == ("other", "")
    assert kinds["barrier.cluster.wait.aligned"] == ("cluster_barrier", "")


def test_what_blocks_send_each_other_is_counted_as_bytes_between_them() -> None:
    send = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r8], %r9, [%r15];"
    body = NEXT + BAR + INIT.format(1) + EXPECT.format(128) + SYNC + "mov.u32 %r9, 1;" + send + WAIT + SYNC
    watcher = Counters()
    out = {"out": np.zeros(256, np.int32)}
    launch(kernel(body, declarations=SHARED), out, 8, 32, cluster=(4, 1, 1), observers=[watcher])
    assert watcher.counts.total("bytes", "bulk_exchange", "cluster") == 8 * 128
