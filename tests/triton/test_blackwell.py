"""Triton on a GPU of capability 10.0: `tl.dot` becomes tcgen05, its sums are in Tensor Memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import triton.language as tl  # noqa: E402

import gpulab  # noqa: E402
from gpulab import triton  # noqa: E402
from gpulab.simulator import device  # noqa: E402

from .test_hopper import attention, matrices, product  # noqa: E402


@pytest.fixture(autouse=True)
def blackwell() -> Iterator[None]:
    before = device.current().gpu
    device.simulate("B200")
    yield
    device.current().gpu = before


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (torch.float16, "f16"),
        (torch.bfloat16, "f16"),
        (torch.float32, "tf32"),
        (torch.float8_e4m3fn, "f8f6f4"),
        (torch.float8_e5m2, "f8f6f4"),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [64, 128])
def test_a_product_in_every_type_runs_on_tcgen05_and_agrees_with_numpy(dtype, kind, rows):
    a, b = matrices(2 * rows, 64, 128, dtype)
    c = torch.zeros(2 * rows, 64)
    made = product[2, 1](a, b, c, 64, 128, M=rows, N=64, K=64, TOTAL=tl.float32, num_warps=4)
    assert f"tcgen05.mma.cta_group::1.kind::{kind}" in made.asm["ptx"] and made.made.kernel.cc == (10, 0)
    assert np.array_equal(c.numpy(), a.double().numpy() @ b.double().numpy().T)


@pytest.mark.parametrize("warps", [4, 8])
def test_an_a_in_tensor_memory_comes_from_the_softmax(warps):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(256, 64, generator=generator).half() for _ in range(3))
    out = torch.zeros(256, 64, dtype=torch.float16)
    made = attention[2,](q, k, v, out, 256, M=128, N=64, D=64, num_warps=warps)
    assert "tcgen05.mma" in made.asm["ptx"]
    expected = torch.softmax(q.float() @ k.float().T, 1) @ v.float()
    assert np.abs(out.float().numpy() - expected.numpy()).max() < 2e-3


def test_the_sanitizer_finds_nothing_in_what_triton_makes():
    a, b = matrices(128, 64, 128, torch.float16)
    c = torch.zeros(128, 64)
    tiles = {"M": 128, "N": 64, "K": 64, "TOTAL": tl.float32}
    assert not gpulab.sanitize(lambda: product[1, 1](a, b, c, 64, 128, **tiles, num_warps=4))
    q, k, v = (torch.randn(128, 64).half() for _ in range(3))
    out = torch.zeros(128, 64, dtype=torch.float16)
    assert not gpulab.sanitize(lambda: attention[1,](q, k, v, out, 128, M=128, N=64, D=64, num_warps=4))


def test_a_report_counts_the_products():
    a, b = matrices(128, 64, 128, torch.float16)
    c = torch.zeros(128, 64)
    report = gpulab.profile(
        lambda: product[1, 1](a, b, c, 64, 128, M=128, N=64, K=64, TOTAL=tl.float32, num_warps=4)
    )
    assert report["tensor_products"] == 128 // 16
    assert report["tensor_product_bytes"] == 128 // 16 * (128 + 64) * 32
    assert report["flops"] >= 2 * 128 * 64 * 128


@triton.jit
def scaled(a, b, sa, sb, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FORM: tl.constexpr,
           PACK: tl.constexpr, STEP: tl.constexpr):  # fmt: skip
    """A block-scaled product; a (M, k) and b (N, k) hold PACK numbers in each byte."""
    row, column = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        inner = start // PACK + tl.arange(0, K // PACK)
        block = start // STEP + tl.arange(0, K // STEP)
        x = tl.load(a + row[:, None] * (k // PACK) + inner[None, :])
        y = tl.load(b + column[:, None] * (k // PACK) + inner[None, :])
        scale_x = tl.load(sa + row[:, None] * (k // STEP) + block[None, :])
        scale_y = tl.load(sb + column[:, None] * (k // STEP) + block[None, :])
        total = tl.dot_scaled(x, scale_x, FORM, y.T, scale_y, FORM, total)
    tl.store(c + row[:, None] * N + column[None, :], total)


MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@pytest.mark.parametrize(("form", "step", "kind"), [("e2m1", 32, "mxf4"), ("e2m1", 16, "mxf4nvf4"),
                                                    ("e4m3", 32, "mxf8f6f4")])  # fmt: skip
def test_a_product_with_block_scales_agrees_with_numpy(form, step, kind):
    m, n, k, pack = 128, 128, 256, 2 if form == "e2m1" else 1
    generator = np.random.default_rng(1)
    if form == "e2m1":
        packed = [generator.integers(0, 256, (rows, k // 2), np.uint8) for rows in (m, n)]
        table = np.concatenate([MAGNITUDES, -MAGNITUDES])
        values = [table[np.stack([p & 15, p >> 4], axis=-1)].reshape(len(p), k) for p in packed]
        given = [torch.from_numpy(p) for p in packed]
    else:
        given = [
            torch.from_numpy(generator.integers(-4, 5, (rows, k))).to(torch.float8_e4m3fn) for rows in (m, n)
        ]
        values = [g.double().numpy() for g in given]
    if step == 32:
        codes = [generator.integers(125, 130, (rows, k // step)).astype(np.uint8) for rows in (m, n)]
        scales = [2.0 ** (c.astype(int) - 127) for c in codes]
        passed = [torch.from_numpy(c) for c in codes]
    else:
        passed = [torch.from_numpy(generator.choice([0.5, 1.0, 1.5, 2.0], (rows, k // step))).to(torch.float8_e4m3fn)
                  for rows in (m, n)]  # fmt: skip
        scales = [s.double().numpy() for s in passed]
    c = torch.zeros(m, n)
    made = scaled[1, 1](*given, *passed, c, k, M=m, N=n, K=128, FORM=form, PACK=pack, STEP=step, num_warps=4)
    assert f"kind::{kind}.block_scale" in made.asm["ptx"]
    left, right = (v * s.repeat(step, axis=1) for v, s in zip(values, scales, strict=True))
    assert np.array_equal(c.numpy(), (left @ right.T).astype(np.float32))


@triton.jit
def mixed(a, b, sa, sb, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A product of bytes of e4m3 (M, k) and of pairs of e2m1 (N, k / 2), each with scales of 32 numbers."""
    row, column = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(a + row[:, None] * k + (start + tl.arange(0, K))[None, :])
        y = tl.load(b + column[:, None] * (k // 2) + (start // 2 + tl.arange(0, K // 2))[None, :])
        block = start // 32 + tl.arange(0, K // 32)
        scale_x = tl.load(sa + row[:, None] * (k // 32) + block[None, :])
        scale_y = tl.load(sb + column[:, None] * (k // 32) + block[None, :])
        total = tl.dot_scaled(x, scale_x, "e4m3", y.T, scale_y, "e2m1", total)
    tl.store(c + row[:, None] * N + column[None, :], total)


def test_a_product_of_eight_and_four_bits_agrees_with_numpy():
    """Triton writes the 4-bit numbers padded to shared memory, as the tensor cores read them."""
    m, n, k = 128, 128, 256
    generator = np.random.default_rng(1)
    x = torch.from_numpy(generator.integers(-4, 5, (m, k))).to(torch.float8_e4m3fn)
    y = generator.integers(0, 256, (n, k // 2), np.uint8)
    codes = [generator.integers(125, 130, (rows, k // 32)).astype(np.uint8) for rows in (m, n)]
    c = torch.zeros(m, n)
    given = x, torch.from_numpy(y), *map(torch.from_numpy, codes)
    made = mixed[1, 1](*given, c, k, M=m, N=n, K=128, num_warps=4)
    assert "kind::mxf8f6f4.block_scale" in made.asm["ptx"]
    of_y = np.concatenate([MAGNITUDES, -MAGNITUDES])[np.stack([y & 15, y >> 4], axis=-1)].reshape(n, k)
    scale_x, scale_y = (2.0 ** (code.astype(int) - 127) for code in codes)
    exact = (x.double().numpy() * scale_x.repeat(32, axis=1)) @ (of_y * scale_y.repeat(32, axis=1)).T
    assert np.array_equal(c.numpy(), exact.astype(np.float32))
