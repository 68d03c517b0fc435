"""Tensors are where they are: no copy, one address for as long as they live, and faults at their ends."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

import gpulab
from gpulab import triton
from gpulab.simulator import device as devices
from gpulab.simulator import simt

tl = triton.language


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def address_of(x, out):
    tl.store(out, x.to(tl.int64))


def address(tensor: torch.Tensor) -> int:
    """Where kernels find the first element."""
    out = torch.zeros(1, dtype=torch.int64)
    address_of[(1,)](tensor, out)
    return int(out)


def test_a_tensor_and_its_views_keep_their_addresses_from_launch_to_launch() -> None:
    x = torch.zeros(100)
    first = address(x)
    torch.ones(1000).sum()
    add_one[(1,)](x, 100, BLOCK=128)
    assert address(x) == first and address(x[10:]) == first + 40
    assert address(x.view(10, 10).T[3:]) == first + 12


def test_what_a_kernel_writes_is_in_the_tensor_and_the_other_way_round() -> None:
    x = torch.zeros(100)
    for expected in (1, 3):
        add_one[(1,)](x, 100, BLOCK=128)
        assert (x == expected).all()
        x += 1


def test_a_launch_with_a_large_tensor_copies_nothing() -> None:
    """64 MB take as much of the device's own memory as they take from the host: none."""
    x = torch.zeros(1 << 24)
    before = {id(a) for a in devices.current().memory.allocations}
    add_one[(1,)](x, 8, BLOCK=8)
    made = [a for a in devices.current().memory.allocations if id(a) not in before]
    assert [a.data.ctypes.data for a in made] == [x.data_ptr()]


def test_memory_goes_back_when_its_tensor_is_gone_and_moves_when_it_is_resized() -> None:
    memory = devices.current().memory
    x, other = torch.zeros(100), torch.zeros(8)
    first = address(x)
    assert memory.find(first) is not None
    x.resize_(100_000).zero_()
    add_one[(1,)](x, 4, BLOCK=4)
    assert memory.find(first) is None and x[:5].tolist() == [1, 1, 1, 1, 0]
    second = address(x)
    del x
    gc.collect()
    add_one[(1,)](other, 8, BLOCK=8)
    assert memory.find(second) is None


@pytest.mark.parametrize("n", [1, 3, 99, 100, 1024])
def test_an_index_outside_a_tensor_is_a_fault_although_others_lie_beside_it(n: int) -> None:
    tensors = [torch.zeros(n) for _ in range(8)]
    for x in tensors:
        add_one[(1,)](x, n, BLOCK=1024)
    with pytest.raises(simt.OutOfBounds, match=rf"x\[{n}\]; x has {n} element"):
        add_one[(1,)](tensors[3], n + 1, BLOCK=2048)
    assert all((x == 1).all() for x in tensors[4:])


def test_memory_at_an_odd_address_works_as_well() -> None:
    octets = np.zeros(41, np.uint8)
    x = torch.from_numpy(octets[1:]).view(torch.uint8)
    assert x.data_ptr() % 16
    add_one[(1,)](x, 40, BLOCK=64)
    assert octets[0] == 0 and (octets[1:] == 1).all()


def test_an_empty_tensor_can_be_passed() -> None:
    add_one[(1,)](torch.zeros(0), 0, BLOCK=16)


def test_the_sanitizer_starts_each_run_from_the_same_tensors() -> None:
    @triton.jit
    def turn(x, n: tl.constexpr):
        i = tl.arange(0, n)
        tl.store(x + (i + 1) % n, tl.load(x + i))

    x = torch.arange(64.0)
    findings = gpulab.sanitize(turn[(1,)], x, 64)
    assert findings.of("race") and sorted(x.tolist()) == list(range(64))


def test_a_pointer_that_the_host_adopted_in_place_is_the_hosts_own_and_far_from_shared_memory() -> None:
    """Generic loads tell shared memory from global by the address, and Linux maps memory high up."""
    data = np.zeros(1 << 20, np.float32)
    device = devices.current()
    there = device.host_memory.adopt(data.ctypes.data, data.nbytes, lambda: True, in_place=True)
    assert there is not None and there.address == data.ctypes.data > 1 << 40
    pointers = np.array([data.ctypes.data], np.int64)
    code = 'extern "C" __global__ void put(float **t) { __shared__ float s; s = 3; t[0][1] = s; t[0][2] = t[0][1]; }'
    gpulab.cupy.RawKernel(code, "put")((1,), (1,), (gpulab.cupy.asarray(pointers),))
    assert data[:4].tolist() == [0, 3, 3, 0]
    device.host_memory.forget(lambda allocation: allocation is there)
    with pytest.raises(simt.OutOfBounds, match="belongs to no array"):
        gpulab.cupy.RawKernel(code, "put")((1,), (1,), (gpulab.cupy.asarray(pointers),))
