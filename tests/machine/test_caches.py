"""The caches: what is read again is found, what does not fit is lost, what is written comes to DRAM at last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab import cuda, device, hardware
from gpulab.hardware.figure import Figure
from gpulab.machine.caches import LINE, SECTOR, WAYS, Caches, Traffic

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
    cuda.atomic.add(bins, cuda.threadIdx.x % 8, 1)


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


def test_the_address_that_most_lanes_update_is_counted():
    found = traffic(A100, count[3, 64], cuda.to_device(np.zeros(8, np.int32)))
    assert found.hottest == 3 * 64 // 8


def test_the_steps_of_two_launches_make_their_sum():
    watch = Caches(A100)
    x, out = cuda.to_device(np.ones(64, np.float32)), cuda.device_array(64, np.float32)
    with device.current().observed(lambda _: watch):
        copy[1, 64](x, out)
        copy[1, 64](x, out)
    first, second = watch.steps
    assert Traffic(*first).l1_hits == 0 and Traffic(*second).l1_hits == 8
    assert Traffic(*(first + second)) == watch.traffic
