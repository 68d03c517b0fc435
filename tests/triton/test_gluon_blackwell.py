"""Gluon on a GPU of capability 10.0: kernels that allocate Tensor Memory and ask for products themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gpulab.analysis.sanitizer import sanitize  # noqa: E402
from gpulab.simulator import device  # noqa: E402
from gpulab.triton.experimental import gluon  # noqa: E402
from gpulab.triton.experimental.gluon import language as gl  # noqa: E402
from gpulab.triton.experimental.gluon.language.nvidia.blackwell import (  # noqa: E402
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)
from gpulab.triton.experimental.gluon.nvidia.blackwell import TensorDescriptor  # noqa: E402


@pytest.fixture(autouse=True)
def b200() -> Iterator[None]:
    before = device.current().gpu
    device.simulate("B200")
    yield
    device.current().gpu = before


@gluon.jit
def through_tensor_memory(
    source, result, M: gl.constexpr, N: gl.constexpr, VARIANT: gl.constexpr, num_warps: gl.constexpr
):
    """Stored to Tensor Memory by one shape, loaded by another, each register where Triton says it is."""
    memory: gl.constexpr = TensorMemoryLayout([M, N], col_stride=1)
    tile = allocate_tensor_memory(gl.float32, [M, N], memory)
    plain: gl.constexpr = tile.get_reg_layout()
    other: gl.constexpr = tile.get_reg_layout(instr_variant=VARIANT)
    row = gl.arange(0, M, gl.SliceLayout(1, plain))[:, None]
    column = gl.arange(0, N, gl.SliceLayout(0, plain))[None, :]
    tile.store(gl.load(source + row * N + column))
    values = tile.load(other)
    row = gl.arange(0, M, gl.SliceLayout(1, other))[:, None]
    column = gl.arange(0, N, gl.SliceLayout(0, other))[None, :]
    gl.store(result + row * N + column, values)


@pytest.mark.parametrize(
    ("rows", "columns", "variant"),
    [
        (rows, columns, variant)
        for rows, columns in ((128, 64), (128, 128), (64, 64))
        for variant in ("32x32b", "16x64b", "16x128b", "16x256b")
        if rows == 128 or variant != "32x32b"  # which takes 128 rows
    ],
)
def test_every_shape_has_each_register_where_triton_says(rows, columns, variant):
    source = torch.arange(rows * columns, dtype=torch.float32).reshape(rows, columns)
    result = torch.zeros(rows, columns)
    made = through_tensor_memory[1,](source, result, rows, columns, variant, num_warps=4)
    assert f"tcgen05.ld.sync.aligned.{variant}" in made.asm["ptx"]
    assert torch.equal(result, source)


@gluon.jit
def product(a, b, c, k, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, num_warps: gl.constexpr):
    """One block multiplies by k in steps."""
    move: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [num_warps, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    memory: gl.constexpr = TensorMemoryLayout([M, N], col_stride=1)
    left = gl.allocate_shared_memory(gl.float16, [M, K], shared)
    right = gl.allocate_shared_memory(
        gl.float16, [N, K], gl.NVMMASharedLayout.get_default_for([N, K], gl.float16)
    )
    total = allocate_tensor_memory(gl.float32, [M, N], memory)
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    row = gl.arange(0, M, gl.SliceLayout(1, move))[:, None]
    column = gl.arange(0, N, gl.SliceLayout(1, move))[:, None]
    inner = gl.arange(0, K, gl.SliceLayout(0, move))[None, :]
    phase = 0
    adds = False
    for start in range(0, k, K):
        x = gl.load(a + row * k + start + inner)
        left.store(x)
        right.store(gl.load(b + column * k + start + inner))
        fence_async_shared()
        gl.barrier()
        tcgen05_mma(left, right.permute((1, 0)), total, use_acc=adds)
        tcgen05_commit(done)
        mbarrier.wait(done, phase=phase)
        phase ^= 1
        adds = True
    mbarrier.invalidate(done)
    out: gl.constexpr = total.get_reg_layout()
    values = total.load(out)
    row = gl.arange(0, M, gl.SliceLayout(1, out))[:, None]
    gl.store(c + row * N + gl.arange(0, N, gl.SliceLayout(0, out))[None, :], values)


@pytest.mark.parametrize(("rows", "columns"), [(128, 64), (128, 256), (64, 32)])
def test_a_product_with_its_own_commits_agrees_with_numpy(rows, columns):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-4, 5, (n, 128), generator=generator).half() for n in (rows, columns))
    c = torch.zeros(rows, columns)
    made = product[1,](a, b, c, 128, rows, columns, 64, num_warps=4)
    assert "tcgen05.mma.cta_group::1.kind::f16" in made.asm["ptx"]
    assert np.array_equal(c.numpy(), a.float().numpy() @ b.float().numpy().T)


@gluon.jit
def halves_by_tma(source, out, num_warps: gl.constexpr):
    """Stored to Tensor Memory, loaded, and sent away from shared memory as halves."""
    M: gl.constexpr = out.block_type.shape[0]
    N: gl.constexpr = out.block_type.shape[1]
    tile = allocate_tensor_memory(gl.float32, [M, N], TensorMemoryLayout([M, N], col_stride=1))
    plain: gl.constexpr = tile.get_reg_layout()
    row = gl.arange(0, M, gl.SliceLayout(1, plain))[:, None]
    tile.store(gl.load(source + row * N + gl.arange(0, N, gl.SliceLayout(0, plain))[None, :]))
    halves = gl.allocate_shared_memory(out.dtype, out.block_type.shape, out.layout)
    halves.store(tile.load().to(gl.float16))
    fence_async_shared()
    tma.async_store(out, [0, 0], halves)
    tma.store_wait(0)


def test_the_sanitizer_says_nothing_of_waits_that_the_compiler_moves():
    source = torch.arange(128 * 64, dtype=torch.float32).reshape(128, 64) % 64
    out = torch.zeros(128, 64, dtype=torch.float16)
    layout = gl.NVMMASharedLayout.get_default_for([128, 64], gl.float16)
    there = TensorDescriptor.from_tensor(out, [128, 64], layout)
    made = halves_by_tma[1,](source, there, num_warps=4)
    assert torch.equal(out.float(), source)
    stores, waits = made.asm["ptx"].rindex("st.shared"), made.asm["ptx"].rindex("tcgen05.wait::ld")
    assert stores < waits, "Triton waits first now: the sanitizer may look at it again"
    assert not sanitize(halves_by_tma[1,], source, there, num_warps=4)
