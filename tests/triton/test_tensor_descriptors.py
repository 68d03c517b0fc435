"""Triton's tensor descriptors on a GPU of capability 9.0: TMA's loads, stores and reductions, made by Triton."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import triton.language as tl  # noqa: E402
from triton.runtime import _allocation  # noqa: E402

from gpulab import triton  # noqa: E402
from gpulab.simulator import device, simt  # noqa: E402
from gpulab.simulator.device import LaunchError  # noqa: E402

SCHEDULES = [simt.LOCKSTEP, simt.warp_serial(3), simt.BACKWARDS, simt.two_teams(1)]


@pytest.fixture(autouse=True)
def hopper() -> Iterator[None]:
    before, token = device.current().gpu, _allocation._allocator.set(_allocation._NULL_ALLOCATOR)
    device.simulate("H100")
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    yield
    device.current().gpu = before
    _allocation._allocator.reset(token)


@triton.jit
def double(a, b, m, n, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(a, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    y = tl.make_tensor_descriptor(b, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    y.store([i, j], x.load([i, j]) * 2)


@triton.jit
def columns(a, b, m, n, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(a, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    y = tl.make_tensor_descriptor(b, shape=[n], strides=[1], block_shape=[N])
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    y.atomic_add([j], tl.sum(x.load([i, j]), 0))


@triton.jit
def rows(a, b, m, n, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(a, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    y = tl.make_tensor_descriptor(b, shape=[m, N], strides=[N, 1], block_shape=[M, N])
    i = tl.program_id(0) * M
    total = tl.zeros((M, N), tl.float32)
    for j in tl.range(0, n, N, num_stages=3):
        total += x.load([i, j]).to(tl.float32)
    y.store([i, 0], total.to(tl.float16))


@triton.jit
def turned(a, b, m, n, M: tl.constexpr, N: tl.constexpr):
    """Three dimensions, of which two change places."""
    x = tl.make_tensor_descriptor(a, shape=[2, m, n], strides=[m * n, n, 1], block_shape=[1, M, N])
    y = tl.make_tensor_descriptor(b, shape=[2, n, m], strides=[m * n, m, 1], block_shape=[1, N, M])
    i, j, k = tl.program_id(0) * M, tl.program_id(1) * N, tl.program_id(2)
    tile = x.load([k, i, j]).reshape(M, N)
    y.store([k, j, i], tile.T.reshape(1, N, M))


def numbers(*shape: int, dtype: str = "float16") -> torch.Tensor:
    return torch.from_numpy((np.arange(np.prod(shape)) % 61).reshape(shape).astype(dtype))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_tiles_that_run_over_the_edge_are_loaded_and_stored(schedule) -> None:
    a, b = numbers(100, 136), torch.zeros(100, 136, dtype=torch.float16)
    with device.current().using(schedule=schedule):
        double[2, 3](a, b, 100, 136, 64, 64)
    assert torch.equal(b, a * 2)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_stages_are_filled_while_others_are_read(schedule) -> None:
    a, b = numbers(100, 512), torch.zeros(100, 64, dtype=torch.float16)
    with device.current().using(schedule=schedule):
        rows[(2,)](a, b, 100, 512, 64, 64)
    assert torch.equal(b, a.reshape(100, 8, 64).float().sum(1).half())


def test_tiles_are_added_in_global_memory() -> None:
    a, b = numbers(100, 136, dtype="float32"), torch.zeros(136)
    columns[2, 3](a, b, 100, 136, 64, 64)
    assert torch.equal(b, a.sum(0))


@pytest.mark.parametrize("type_", ["float16", "float32", "int8", "int32"])
def test_all_types_and_three_dimensions(type_) -> None:
    a, b = numbers(2, 80, 48, dtype=type_), torch.zeros(2, 48, 80, dtype=getattr(torch, type_))
    turned[2, 2, 2](a, b, 80, 48, 64, 32)
    assert torch.equal(b, a.transpose(1, 2))


def test_a_program_of_two_blocks_is_a_cluster() -> None:
    a, b = numbers(128, 128), torch.zeros(128, 128, dtype=torch.float16)
    double[2, 2](a, b, 128, 128, 64, 64, num_ctas=2)
    assert torch.equal(b, a * 2)


def test_without_an_allocator_a_launch_says_what_to_call() -> None:
    _allocation._allocator.set(_allocation._NULL_ALLOCATOR)
    a = numbers(64, 64)
    with pytest.raises(LaunchError, match=r"no allocator was set\. Call triton\.set_allocator"):
        double[1, 1](a, a, 64, 64, 64, 64)


def test_a_stride_that_tma_cannot_take_is_told() -> None:
    a, b = numbers(64, 100), torch.zeros(64, 100, dtype=torch.float16)
    with pytest.raises(
        simt.KernelFault, match="stride of dimension 1 must be a multiple of 16 bytes, but is 200"
    ):
        double[1, 1](a, b, 64, 100, 64, 64)
