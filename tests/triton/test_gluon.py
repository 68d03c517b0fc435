"""Gluon on a GPU of capability 9.0: kernels that say their own layouts and their own waits."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from triton.experimental.gluon.language.nvidia import hopper  # noqa: E402

from gpulab.simulator import device  # noqa: E402
from gpulab.triton.experimental import gluon  # noqa: E402
from gpulab.triton.experimental.gluon import language as gl  # noqa: E402
from gpulab.triton.experimental.gluon.language.nvidia.hopper import (  # noqa: E402
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@pytest.fixture(autouse=True)
def h100() -> Iterator[None]:
    before = device.current().gpu
    device.simulate("H100")
    yield
    device.current().gpu = before


@gluon.jit
def loaded(pointer, ROWS: gl.constexpr, COLUMNS: gl.constexpr, layout: gl.constexpr):
    row = gl.arange(0, ROWS, gl.SliceLayout(1, layout))[:, None]
    return gl.load(pointer + row * COLUMNS + gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))[None, :])


@gluon.jit
def product(
    a,
    b,
    c,
    M: gl.constexpr,
    N: gl.constexpr,
    K: gl.constexpr,
    HELD: gl.constexpr,
    AT_ONCE: gl.constexpr,
    num_warps: gl.constexpr,
):
    """One block multiplies; the parts of k are asked for one after the other, and waited for together."""
    move: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [num_warps, 1], [1, 0])
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], instr_shape=[16, N, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, sums, 2)
    total = gl.zeros((M, N), gl.float32, sums)
    right = gl.allocate_shared_memory(
        gl.float16, [AT_ONCE, K, N], gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    )
    left = gl.allocate_shared_memory(
        gl.float16, [AT_ONCE, M, K], gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    )
    for i in gl.static_range(AT_ONCE):
        right.index(i).store(loaded(b + i * K * N, K, N, move))
        left.index(i).store(loaded(a + i * M * K, M, K, move))
    fence_async_shared()
    gl.barrier()
    for i in gl.static_range(AT_ONCE):
        x = left.index(i).load(operand) if HELD else left.index(i)
        total = warpgroup_mma(x, right.index(i), total, is_async=True)
        total = warpgroup_mma_wait(1, deps=(total,))
    total = warpgroup_mma_wait(0, deps=(total,))
    row = gl.arange(0, M, gl.SliceLayout(1, sums))[:, None]
    gl.store(c + row * N + gl.arange(0, N, gl.SliceLayout(0, sums))[None, :], total)


@pytest.mark.parametrize(("held", "warps", "n"), [(False, 4, 32), (True, 4, 16), (False, 8, 64)], ids=str)
def test_a_product_of_warpgroups_agrees_with_numpy(held, warps, n):
    rows = 16 * warps
    generator = torch.Generator().manual_seed(n)
    a, b = (torch.randint(-4, 5, s, generator=generator).half() for s in ((3, rows, 64), (3, 64, n)))
    c = torch.zeros(rows, n)
    made = product[1,](a, b, c, rows, n, 64, held, 3, num_warps=warps)
    assert f"m64n{n}k16.f32.f16.f16" in made.kernel.ptx
    assert np.array_equal(c.numpy(), np.einsum("imk,ikn->mn", a.double().numpy(), b.double().numpy()))


def test_gluons_modules_are_gluons_own_under_every_name():
    assert warpgroup_mma is hopper.warpgroup_mma
    assert sys.modules["gpulab.triton.experimental.gluon"] is gluon
    assert gluon.language is gl and gl.nvidia.hopper is hopper
    assert (
        gluon.constexpr_function is __import__("triton.experimental.gluon", fromlist=["x"]).constexpr_function
    )


def test_a_kernel_of_gluon_is_launched_with_a_grid():
    with pytest.raises(Exception, match=r"product is a kernel: say how many programs, as in product\[grid\]"):
        product(1)
