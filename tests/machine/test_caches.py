"""The caches: what is read again is found, what does not fit is lost, what is written comes to DRAM at last."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab import cuda
from gpulab.analysis.machine.caches import LINE, SECTOR, WAYS, Caches, Traffic
from gpulab.simulator import device, hardware
from gpulab.simulator.hardware.figure import Figure
from gpulab.simulator.ptx import Instruction

from ..sanitizer.corpus import on_hopper

A100 = hardware.find("A100")


def small(l1: int, l2: int, sms: int = 1):
    """An A100 with these caches, in bytes."""
    return replace(
        A100,
        sms=Figure(sms, "SMs", A100.sms.source),
        l1_bytes=Figure(l1, "B", A100.l1_bytes.source),
        l2_bytes=Figure(l2, "B", A100.l2_bytes.source),
    )


def traffic(gpu, configured, *args) -> Traffic:
    watch = Caches(gpu)
    with device.current().observed(lambda _: watch):
        configured(*args)
    return watch.traffic


@cuda.jit
def copy(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i]


@cuda.jit
def again(x, out, times):
    i = cuda.grid(1)
    s = np.float32(0)
    for _ in range(times):
        for k in range(x.size // 32):
            s += x[k * 32 + i % 32]
    out[i] = s


@cuda.jit
def far_apart(x, out):
    i = cuda.grid(1)
    out[i] = x[i * 8]


@cuda.jit
def count(bins):
    cuda.atomic.add(bins, cuda.threadIdx.x % bins.size, 1)


def test_a_copy_reads_and_writes_each_sector_once():
    n = 4096
    found = traffic(
        A100, copy[n // 128, 128], cuda.to_device(np.ones(n, np.float32)), cuda.device_array(n, np.float32)
    )
    sectors = n * 4 // SECTOR
    assert (found.l1_reads, found.l1_hits) == (sectors, 0)
    assert (found.l2_reads, found.l2_writes, found.dram_reads) == (sectors, sectors, sectors)
    assert found.dram_writes == 0 and found.l2_dirty == sectors, "the L2 keeps what was written"
    assert found.dram_bytes == n * 4
    assert found.l2_bytes == 2 * n * 4


def test_what_fits_into_the_l1_is_read_from_the_l2_once():
    x = cuda.to_device(np.ones(2048, np.float32))  # 8 KiB
    found = traffic(small(64 << 10, 1 << 20), again[1, 32], x, cuda.device_array(32, np.float32), 5)
    assert found.l1_reads == 5 * 256
    assert found.l2_reads == found.dram_reads == 256
    assert found.l1_hit_rate == 4 / 5


def test_what_fits_into_the_l2_only_is_read_from_dram_once():
    x = cuda.to_device(np.ones(16384, np.float32))  # 64 KiB
    found = traffic(small(2 << 10, 4 << 20), again[1, 32], x, cuda.device_array(32, np.float32), 3)
    assert found.l1_hits == 0, "a cyclic pass over more than fits finds nothing with least recently used"
    assert found.dram_reads == 2048
    assert found.l2_hit_rate == 2 / 3


def test_what_fits_nowhere_is_read_from_dram_each_time():
    x = cuda.to_device(np.ones(16384, np.float32))
    found = traffic(small(2 << 10, 2 << 10), again[1, 32], x, cuda.device_array(32, np.float32), 3)
    assert found.dram_reads == 3 * 2048


def test_each_sm_has_an_l1_of_its_own():
    x = cuda.to_device(np.ones(2048, np.float32))
    for sms in (1, 4):
        found = traffic(small(64 << 10, 1 << 20, sms), again[4, 32], x, cuda.device_array(128, np.float32), 1)
        assert found.l2_reads == sms * 256
        assert found.dram_reads == 256


def test_a_stride_takes_a_sector_for_each_element():
    x = cuda.to_device(np.ones(256 * 8, np.float32))
    found = traffic(A100, far_apart[2, 128], x, cuda.device_array(256, np.float32))
    assert found.dram_reads == 256
    assert found.l2_writes == 256 * 4 // SECTOR


def test_written_sectors_come_to_dram_when_others_need_their_place():
    n = 16384
    gpu = small(2 << 10, 4 << 10)
    found = traffic(
        gpu, copy[n // 128, 128], cuda.to_device(np.ones(n, np.float32)), cuda.device_array(n, np.float32)
    )
    assert found.dram_writes + found.l2_dirty == n * 4 // SECTOR
    assert found.dram_writes > 0.9 * n * 4 // SECTOR


@cuda.jit
def every(x, out, stride):
    out[cuda.grid(1)] = x[cuda.grid(1) * stride]


@cuda.jit
def apart(x, out, stride):
    out[cuda.grid(1) * stride] = x[cuda.grid(1)]


@cuda.jit
def both(x, out):
    i = cuda.grid(1)
    first = x[i % 32]
    cuda.syncthreads()
    out[i] = first + x[31 - i % 32]


def test_atomics_work_in_the_l2():
    found = traffic(A100, count[3, 64], cuda.to_device(np.zeros(8, np.int32)))
    assert found.l1_reads == 0 and found.l1_hit_rate is None
    assert found.l2_atomics == 3 * 2, "one sector a warp"
    assert found.dram_reads == 1


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 64), st.integers(1, 3))
def test_nothing_is_read_twice_from_dram_while_the_l2_holds_it(lines, times):
    """Up to half of an L2 of one way of sets each: no set overflows when there is but one."""
    gpu = small(LINE * WAYS, LINE * WAYS)
    x = cuda.to_device(np.ones(lines * 32, np.float32))
    found = traffic(gpu, again[1, 32], x, cuda.device_array(32, np.float32), times)
    once = lines * LINE // SECTOR
    expected = once if lines <= WAYS else once * times
    assert found.dram_reads == expected


def test_a_gpu_whose_l1_is_all_shared_memory_still_has_one_set():
    watch = Caches(A100, shared_bytes=int(A100.l1_bytes))
    x = cuda.to_device(np.ones(64, np.float32))
    with device.current().observed(lambda _: watch):
        copy[1, 64](x, cuda.device_array(64, np.float32))
    assert watch.traffic.l1_reads == 8


@pytest.mark.parametrize("name", ["T4", "A100", "H200", "RTX 4090"])
def test_every_gpu_of_the_course_has_caches(name):
    assert Caches(hardware.find(name)).traffic == Traffic(*[0] * 9)


def test_the_line_that_atomics_update_most_is_counted_in_passes():
    found = traffic(A100, count[3, 64], cuda.to_device(np.zeros(8, np.int32)))
    assert found.hottest == 3 * 64 // 8, "four lanes of each warp take turns on each of eight words"
    spread = traffic(A100, count[3, 64], cuda.to_device(np.zeros(64, np.int32)))
    assert spread.hottest == 3 * 4, "a pass for each of a line's four sectors"


def test_a_miss_on_hopper_brings_two_sectors_and_the_second_is_no_hit_while_it_comes():
    x, out = cuda.to_device(np.ones(32 * 32, np.float32)), cuda.device_array(32, np.float32)
    wide = traffic(hardware.find("H100"), every[1, 32], x, out, 32)
    assert (wide.l2_reads, wide.dram_reads) == (32, 64)
    whole = traffic(hardware.find("H100"), every[1, 32], x, out, 1)
    assert (whole.l2_reads, whole.l2_read_hits, whole.dram_reads) == (4, 0, 4)
    assert traffic(A100, every[1, 32], x, out, 32).dram_reads == 32


def of_pair(name: str) -> Traffic:
    """What a kernel of the sanitizer's corpus for Hopper makes the caches do, on an H100."""
    pair = next(pair for pair in on_hopper.PAIRS if pair.name == name)
    before = device.current().gpu
    device.simulate("H100")
    try:
        return traffic(hardware.find("H100"), pair.launch(mended=True), *pair.arguments())
    finally:
        device.current().gpu = before


def test_bulk_copies_pass_the_l1_by_and_come_from_dram():
    """256 bytes come by the TMA, and 64 threads store as many."""
    loaded = of_pair("one thread waits and the block meets")
    assert (loaded.l1_reads, loaded.l2_reads, loaded.dram_reads) == (0, 8, 8)
    assert (loaded.l2_writes, loaded.l2_lines) == (8, 4)
    stored = of_pair("two stores share a wait")  # each of 128 bytes, of what 64 threads loaded
    assert (stored.l1_reads, stored.l2_reads, stored.l2_writes, stored.l2_lines) == (8, 8, 8, 4)
    assert stored.l2_dirty == 8


def test_a_multicast_reads_the_l2_once():
    assert of_pair("a copy is sent to more blocks than there are").l2_reads == 8


def test_a_warp_waits_for_the_last_of_its_sectors_and_for_those_on_their_way():
    """Four warps load the same line: the first sends for it, the others wait as long. The next load of the
    same line finds it in the L1."""
    watch = Caches(A100)
    x, out = cuda.to_device(np.ones(32, np.float32)), cuda.device_array(128, np.float32)
    with device.current().observed(lambda _: watch):
        both[1, 128](x, out)
    assert sorted(waited.tolist() for waited in watch.waits.values()) == [[0, 0, 4], [4, 0, 0]]
    assert watch.traffic.l1_hits == 4 * 3 + 4 * 4


def test_lines_are_counted_once_for_a_request_and_twice_where_a_sector_is_written_in_part():
    x, out = cuda.to_device(np.ones(32 * 32, np.float32)), cuda.device_array(32 * 32, np.float32)
    assert traffic(A100, copy[1, 32], x, out).l2_lines == 1 + 1
    assert traffic(A100, every[1, 32], x, out, 32).l2_lines == 32 + 1
    assert traffic(A100, apart[1, 32], x, out, 32).l2_lines == 1 + 2 * 32


def test_the_kernels_own_bytes_come_from_dram_once():
    watch = Caches(A100, code_bytes=3000)
    x, out = cuda.to_device(np.ones(64, np.float32)), cuda.device_array(64, np.float32)
    with device.current().observed(lambda _: watch):
        copy[1, 64](x, out)
        copy[1, 64](x, out)
    first, second = watch.steps
    assert Traffic(*first).dram_reads == 94 + 8 and Traffic(*second).dram_reads == 0


def test_the_steps_of_two_launches_make_their_sum():
    watch = Caches(A100)
    x, out = cuda.to_device(np.ones(64, np.float32)), cuda.device_array(64, np.float32)
    with device.current().observed(lambda _: watch):
        copy[1, 64](x, out)
        copy[1, 64](x, out)
    first, second = watch.steps
    assert Traffic(*first).l1_hits == 0 and Traffic(*second).l1_hits == 8
    assert Traffic(*(first + second)) == watch.traffic


# ---- a second model, written as simply as can be ----------------------------------------------------


def set_of(line: int, sets: int) -> int:
    """The set of a line as `caches.py` says: the upper half of a product with 2⁶⁴ ÷ golden ratio."""
    return ((line * 0x9E3779B97F4A7C15 % 2**64) >> 33) % sets


class OneCache:
    """Sets of lines in the order of use, the oldest first; a line maps its valid sectors to whether they are
    dirty."""

    def __init__(self, nbytes: int) -> None:
        self.sets: list[dict[int, dict[int, bool]]] = [{} for _ in range(max(nbytes // (LINE * WAYS), 1))]

    def line(self, number: int) -> dict[int, bool] | None:
        return self.sets[set_of(number, len(self.sets))].get(number)

    def touched(self, number: int) -> tuple[dict[int, bool], int]:
        """The line, now the newest of its set, and how many dirty sectors had to leave for it."""
        lines, left = self.sets[set_of(number, len(self.sets))], 0
        if number not in lines and len(lines) == WAYS:
            oldest = next(iter(lines))
            left = sum(lines.pop(oldest).values())
        lines[number] = lines.pop(number, {})
        return lines[number], left


def walked(accesses, l1: int, l2: int, sms: int) -> Traffic:
    """Accesses (kind, SM, sectors) through an L1 for each SM and one L2."""
    firsts, second, n = [OneCache(l1) for _ in range(sms)], OneCache(l2), Counter()
    for kind, sm, sectors in accesses:
        for sector in sorted(set(sectors)):
            number, part = divmod(sector, LINE // SECTOR)
            if kind == "load":
                n["l1_reads"] += 1
                mine, _ = firsts[sm].touched(number)
                if part in mine:
                    n["l1_hits"] += 1
                    continue
                mine[part] = False
            elif kind == "atomic" and (mine := firsts[sm].line(number)):
                mine.pop(part, None)
            line, left = second.touched(number)
            n["dram_writes"] += left
            n["l2_read_hits"] += kind == "load" and part in line
            n["dram_reads"] += kind != "store" and part not in line
            n[{"load": "l2_reads", "store": "l2_writes", "atomic": "l2_atomics"}[kind]] += 1
            line[part] = kind != "load" or line.get(part, False)
    n["l2_dirty"] = sum(sum(line.values()) for lines in second.sets for line in lines.values())
    names = "l1_reads l1_hits l2_reads l2_read_hits l2_writes l2_atomics dram_reads dram_writes l2_dirty"
    return Traffic(*(n[name] for name in names.split()), hottest=0)


BLOCK = 32  # one warp


def told(watch: Caches, kind: str, block: int, addresses: np.ndarray) -> None:
    """Tells the caches of an access of one warp, as the simulator does."""
    opcode = {"load": "ld.global.f32", "store": "st.global.f32", "atomic": "atom.global.add.u32"}[kind]
    chunk = SimpleNamespace(
        blocks=np.array([block]), lanes_per_block=BLOCK, warps_per_block=1, shape=(1, BLOCK)
    )
    access = SimpleNamespace(
        space="global", kind=kind, chunk=chunk, lanes=None, size=4,
        address=addresses.reshape(1, BLOCK), instruction=Instruction(opcode, ()),
    )  # fmt: skip
    watch.access(access)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["load", "load", "store", "atomic"]),
            st.integers(0, 5),  # block
            st.integers(0, 12) | st.integers(0, 400),  # where
            st.sampled_from([0, 4, 32, 128, 132]),  # bytes from lane to lane
        ),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from([LINE * WAYS, 3 * LINE * WAYS]),
    st.sampled_from([2 * LINE * WAYS, 5 * LINE * WAYS]),
    st.integers(1, 3),
)
def test_the_caches_do_what_a_second_model_does(warps, l1, l2, sms):
    watch = Caches(small(l1, l2, sms))
    accesses = []
    for kind, block, where, stride in warps:
        addresses = np.arange(BLOCK) * stride + where * 64
        told(watch, kind, block, addresses)
        accesses.append((kind, block % sms, (addresses // SECTOR).tolist()))
    watch.end()
    found = replace(watch.traffic, hottest=0, l2_lines=0)
    assert found == walked(accesses, l1, l2, sms)


@pytest.mark.parametrize(
    ("kind", "block", "hits"),
    [("atomic", 0, 0), ("atomic", 1, 1), ("store", 0, 1)],
    ids=["atomic", "atomic of another SM", "store"],
)
def test_only_an_atomic_takes_its_line_out_of_the_l1_of_its_sm(kind, block, hits):
    watch, line = Caches(small(LINE * WAYS, 2 * LINE * WAYS, 2)), np.zeros(BLOCK, np.int64)
    for what, of in (("load", 0), (kind, block), ("load", 0)):
        told(watch, what, of, line)
    watch.end()
    assert watch.traffic.l1_hits == hits
