"""Gluon on a GPU of capability 9.0: kernels that say their own layouts and their own waits."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from triton.experimental.gluon.language.nvidia import hopper  # noqa: E402

from gpulab.analysis.sanitizer import sanitize  # noqa: E402
from gpulab.simulator import device  # noqa: E402
from gpulab.triton.experimental import gluon  # noqa: E402
from gpulab.triton.experimental.gluon import language as gl  # noqa: E402
from gpulab.triton.experimental.gluon.language.nvidia.hopper import (  # noqa: E402
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
from gpulab.triton.experimental.gluon.nvidia.hopper import TensorDescriptor  # noqa: E402


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
    assert f"m64n{n}k16.f32.f16.f16" in made.asm["ptx"]
    expected = np.einsum("imk,ikn->mn", a.double().numpy(), b.double().numpy())
    assert np.array_equal(c.numpy(), expected)
    again = torch.zeros(rows, n)
    made[1,](a, b, again)  # with the constants that it was compiled for, the option among them
    assert np.array_equal(again.numpy(), expected)


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


# ---- tiles that TMA moves --------------------------------------------------------------------------


@gluon.jit
def product_of_tiles(a, b, c, HELD: gl.constexpr, TRANSPOSED: gl.constexpr, num_warps: gl.constexpr):
    """One tile of C; the product of a step is made while the next one's operands come."""
    rows: gl.constexpr = c.block_type.shape[0]
    columns: gl.constexpr = c.block_type.shape[1]
    depth: gl.constexpr = a.block_type.shape[1]
    row, column = gl.program_id(0) * rows, gl.program_id(1) * columns
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], instr_shape=[16, columns, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, sums, 2)
    left = gl.allocate_shared_memory(a.dtype, [2, rows, depth], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [2, b.block_type.shape[0], b.block_type.shape[1]], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    total = warpgroup_mma_init(gl.zeros((rows, columns), gl.float32, sums))
    phase = 0
    for k in range(0, a.shape[1], depth):
        stage = (k // depth) % 2
        mbarrier.expect(full, a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [row, k], full, left.index(stage))
        if TRANSPOSED:
            tma.async_load(b, [column, k], full, right.index(stage))
        else:
            tma.async_load(b, [k, column], full, right.index(stage))
        mbarrier.wait(full, phase)
        phase ^= 1
        y = right.index(stage).permute((1, 0)) if TRANSPOSED else right.index(stage)
        x = left.index(stage).load(operand) if HELD else left.index(stage)
        total = warpgroup_mma_wait(0, deps=(total,))
        total = warpgroup_mma(x, y, total, is_async=True)
    total = warpgroup_mma_wait(0, deps=(total,))
    mbarrier.invalidate(full)
    result = gl.allocate_shared_memory(c.dtype, [rows, columns], c.layout)
    result.store(total)
    fence_async_shared()
    tma.async_store(c, [row, column], result)
    tma.store_wait(0)


def described(x: torch.Tensor, block: list[int]) -> TensorDescriptor:
    element = gl.float16 if x.dtype == torch.float16 else gl.float32
    layout = gl.NVMMASharedLayout.get_default_for(block, element)
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block, layout)


@pytest.mark.parametrize(
    ("held", "transposed", "warps"),
    [(False, False, 4), (True, False, 4), (False, True, 8)],
    ids=str,
)
def test_tiles_come_by_tma_and_are_multiplied_beyond_the_edges_too(held, transposed, warps):
    rows = 16 * warps
    generator = torch.Generator().manual_seed(warps)
    m, n, k = rows + 24, 72, 112  # no multiples of the tiles: what is outside is 0 and is not stored
    a, b = (
        torch.randint(-4, 5, s, generator=generator).half()
        for s in ((m, k), (n, k) if transposed else (k, n))
    )
    c = torch.full((m, n), -1.0)
    made = product_of_tiles[2, 2](
        described(a, [rows, 64]),
        described(b, [64, 64]),
        described(c, [rows, 64]),
        held,
        transposed,
        num_warps=warps,
    )
    assert "wgmma.mma_async" in made.asm["ptx"] and "cp.async.bulk.tensor.2d" in made.asm["ptx"]
    right = b.double().numpy().T if transposed else b.double().numpy()
    assert np.array_equal(c.numpy(), a.double().numpy() @ right)
    tiles = described(a, [rows, 64]), described(b, [64, 64]), described(c, [rows, 64])
    assert not sanitize(product_of_tiles[2, 2], *tiles, held, transposed, num_warps=warps)


@gluon.jit
def brings(a, tiles, full, empty):
    for i in range(a.shape[1] // a.block_type.shape[1]):
        stage = i % 2
        mbarrier.wait(empty.index(stage), i // 2 % 2 ^ 1)
        mbarrier.expect(full.index(stage), a.block_type.nbytes)
        tma.async_load(a, [0, i * a.block_type.shape[1]], full.index(stage), tiles.index(stage))


@gluon.jit
def adds_up(a, tiles, full, empty, out, layout: gl.constexpr):
    rows: gl.constexpr = a.block_type.shape[0]
    columns: gl.constexpr = a.block_type.shape[1]
    total = gl.zeros((rows, columns), gl.float32, layout)
    for i in range(a.shape[1] // columns):
        stage = i % 2
        mbarrier.wait(full.index(stage), i // 2 % 2)
        total += tiles.index(stage).load(layout)
        fence_async_shared()
        mbarrier.arrive(empty.index(stage), count=1)
    row = gl.arange(0, rows, gl.SliceLayout(1, layout))[:, None]
    gl.store(out + row * columns + gl.arange(0, columns, gl.SliceLayout(0, layout))[None, :], total)


@gluon.jit
def sum_of_tiles(a, out, num_warps: gl.constexpr):
    """One warp brings tiles, the others add them up."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [num_warps, 1], [1, 0])
    tiles = gl.allocate_shared_memory(a.dtype, [2, a.block_type.shape[0], a.block_type.shape[1]], a.layout)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize(
        [(adds_up, (a, tiles, full, empty, out, layout)), (brings, (a, tiles, full, empty))], [1], [24]
    )


def test_warps_with_different_roles_pass_tiles_and_registers_to_each_other():
    a = torch.arange(32 * 160, dtype=torch.float32).reshape(32, 160)
    out = torch.zeros(32, 32)
    made = sum_of_tiles[1,](described(a, [32, 32]), out, num_warps=4, maxnreg=128)
    assert "setmaxnreg.dec" in made.asm["ptx"] and made.made.threads == 256
    assert np.array_equal(out.numpy(), a.numpy().reshape(32, 5, 32).sum(axis=1))
    assert not sanitize(sum_of_tiles[1,], described(a, [32, 32]), out, num_warps=4, maxnreg=128)


# ---- images --------------------------------------------------------------------------------------


@gluon.jit
def pixels_of(image, out, row, column, down: gl.constexpr, across: gl.constexpr):
    tile = gl.allocate_shared_memory(image.dtype, out.block_type.shape, out.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, out.block_type.nbytes)
    tma.async_load_im2col(image, [0, row, column, 0], [down, across], bar, tile)
    mbarrier.wait(bar, 0)
    fence_async_shared()
    tma.async_store(out, [0, 0], tile)
    tma.store_wait(0)


@pytest.mark.parametrize(("down", "across"), [(0, 0), (2, 1)])
def test_pixels_of_an_image_come_by_tma_with_zeros_around_it(down, across):
    """A 3 × 3 filter on an image with a border of 1: each pixel that the filter's element meets, in order."""
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptorIm2Col

    image = torch.arange(4 * 4 * 32, dtype=torch.float32).reshape(1, 4, 4, 32) + 1
    out = torch.zeros(16, 32)
    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
    read = TensorDescriptorIm2Col.from_tensor(
        image, [16, 32], layout, pixel_box_lower_corner=[-1, -1], pixel_box_upper_corner=[-1, -1]
    )
    written = TensorDescriptor.from_tensor(out, [16, 32], layout)
    pixels_of[(1,)](read, written, -1, -1, down, across, num_warps=1)
    padded = torch.nn.functional.pad(image[0], (0, 0, 1, 1, 1, 1))
    assert torch.equal(out.reshape(4, 4, 32), padded[down : down + 4, across : across + 4])


@gluon.jit
def filtered(image, filters, out, across, LENGTH: gl.constexpr, BORDER: gl.constexpr, WAITS: gl.constexpr):
    """Pixels of a convolution, one element of the filter after the other, with one tile for each operand.

    Unless it `WAITS`, it fills them again while the product before may still read them.
    """
    pixels: gl.constexpr = out.block_type.shape[0]
    count: gl.constexpr = out.block_type.shape[1]
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], instr_shape=[16, count, 16])
    left = gl.allocate_shared_memory(image.dtype, image.block_shape, image.layout)
    right = gl.allocate_shared_memory(filters.dtype, filters.block_shape, filters.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    total = warpgroup_mma_init(gl.zeros((pixels, count), gl.float32, sums))
    first = gl.program_id(0) * pixels
    row, column = first // across - BORDER, first % across - BORDER
    for i in range(LENGTH * LENGTH):
        if WAITS:
            total = warpgroup_mma_wait(0, deps=(total,))
        mbarrier.expect(full, image.block_type.nbytes + filters.block_type.nbytes)
        place = [(i // LENGTH).to(gl.int16), (i % LENGTH).to(gl.int16)]
        tma.async_load_im2col(image, [0, row, column, 0], place, full, left)
        tma.async_load(filters, [0, i * image.block_type.shape[1]], full, right)
        mbarrier.wait(full, i & 1)
        if not WAITS:
            total = warpgroup_mma_wait(0, deps=(total,))
        total = warpgroup_mma(left, right.permute((1, 0)), total, is_async=True)
    total = warpgroup_mma_wait(0, deps=(total,))
    result = gl.allocate_shared_memory(out.dtype, out.block_shape, out.layout)
    result.store(total)
    fence_async_shared()
    tma.async_store(out, [first, 0], result)
    tma.store_wait(0)


def images() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, tuple]:
    """An image of 8 × 8 pixels, eight filters, the result's memory, and the arguments of `filtered`."""
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptorIm2Col

    generator = torch.Generator().manual_seed(3)
    image = torch.randint(-4, 5, (1, 8, 8, 64), generator=generator).half()
    filters = torch.randint(-4, 5, (8, 3, 3, 64), generator=generator).half()
    out = torch.full((64, 8), -1.0)
    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    read = TensorDescriptorIm2Col.from_tensor(
        image, [64, 64], layout, pixel_box_lower_corner=[-1, -1], pixel_box_upper_corner=[-1, -1]
    )
    return image, filters, out, (read, described(filters.reshape(8, -1), [8, 64]), described(out, [64, 8]), 8)


def test_a_convolution_by_tma_and_warpgroups_agrees_with_pytorch():
    image, filters, out, arguments = images()
    filtered[1,](*arguments, 3, 1, True)
    one, each = (x.float().permute(0, 3, 1, 2) for x in (image, filters))
    expected = torch.nn.functional.conv2d(one, each, padding=1)[0].permute(1, 2, 0)
    assert torch.equal(out.reshape(8, 8, 8), expected)
    assert not sanitize(filtered[1,], *arguments, 3, 1, True)


def test_a_tile_that_comes_again_before_the_product_is_waited_for_is_lost_and_told():
    _, _, right, arguments = images()
    filtered[1,](*arguments, 3, 1, True)
    _, _, out, arguments = images()
    filtered[1,](*arguments, 3, 1, False)
    assert not torch.equal(out, right)
    findings = sanitize(filtered[1,], *arguments, 3, 1, False)
    assert [f.kind for f in findings] == ["barrier"] * 2  # of the pixels and of the filters
    assert all("overwrites an operand in shared memory too early" in str(f) for f in findings)
