"""Kernels of the usual Triton exercises, written afresh, against torch on the CPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import triton.language as tl  # noqa: E402

import gpulab  # noqa: E402
from gpulab import triton  # noqa: E402


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@pytest.mark.parametrize("n", [1, 15, 1000, 1024, 1025])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8]
)
def test_vectors_are_added_at_any_size_and_type(n, dtype):
    x, y = (torch.randn(n) * 30).to(dtype), (torch.randn(n) * 30).to(dtype)
    out = torch.full((n,), 99).to(dtype)
    add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    assert torch.equal(out, x + y)


@triton.jit
def softmax_rows(x, out, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * stride + i, powers / tl.sum(powers, 0), mask=i < n)


@pytest.mark.parametrize("columns", [33, 500, 1024])
def test_a_row_softmax_agrees_with_torch_for_large_logits(columns):
    x = torch.randn(20, columns) * 300
    out = torch.empty_like(x)
    softmax_rows[(20,)](x, out, columns, x.stride(0), BLOCK=triton.next_power_of_2(columns))
    torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)


@triton.jit
def matmul(a, b, c, m, n, k, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    first = program // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    tile_m = first + program % (GROUP * tiles_n) % height
    tile_n = program % (GROUP * tiles_n) // height
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * k + depth, mask=(rows[:, None] < m) & (depth < k), other=0.0)
        y = tl.load(b + depth[:, None] * n + columns, mask=(depth[:, None] < k) & (columns < n), other=0.0)
        total = tl.dot(x, y, total)
    inside = (rows[:, None] < m) & (columns < n)
    tl.store(c + rows[:, None] * n + columns, total.to(c.dtype.element_ty), mask=inside)


@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float16, 2e-3), (torch.bfloat16, 2e-2), (torch.float32, 5e-3)]
)
@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (70, 45, 33)])
def test_a_grouped_matrix_product_agrees_with_torch(dtype, tolerance, m, n, k):
    a, b = (torch.randn(m, k) / k**0.5).to(dtype), torch.randn(k, n).to(dtype)
    c = torch.empty(m, n, dtype=dtype)
    matmul[(triton.cdiv(m, 32) * triton.cdiv(n, 32),)](a, b, c, m, n, k, GROUP=2, BM=32, BN=32, BK=32)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=tolerance, atol=tolerance)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


def test_seeded_dropout_keeps_its_share_and_repeats():
    x, first, second, other = (torch.ones(4096) for _ in range(4))
    dropout[(4,)](x, first, 4096, 0.25, 7, BLOCK=1024)
    dropout[(4,)](x, second, 4096, 0.25, 7, BLOCK=1024)
    dropout[(4,)](x, other, 4096, 0.25, 8, BLOCK=1024)
    assert torch.equal(first, second) and not torch.equal(first, other)
    assert 0.72 < (first != 0).float().mean() < 0.78
    torch.testing.assert_close(first[first != 0], torch.full_like(first[first != 0], 1 / 0.75))


@triton.jit
def layer_norm(x, weight, bias, out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < n
    values = tl.load(x + row * n + i, mask=inside, other=0.0)
    mean = tl.sum(values, 0) / n
    centred = tl.where(inside, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    w, b = tl.load(weight + i, mask=inside), tl.load(bias + i, mask=inside)
    tl.store(out + row * n + i, centred * scale * w + b, mask=inside)


def test_layer_norm_agrees_with_torch():
    x, w, b = torch.randn(17, 300), torch.randn(300), torch.randn(300)
    out = torch.empty_like(x)
    layer_norm[(17,)](x, w, b, out, 300, 1e-5, BLOCK=512)
    torch.testing.assert_close(out, torch.nn.functional.layer_norm(x, (300,), w, b), rtol=1e-4, atol=1e-5)


@triton.jit
def attention(
    q, k, v, out, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):
    head = tl.program_id(1) * n * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + d)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    mixed = tl.zeros((BM, D), tl.float32)
    last = (tl.program_id(0) + 1) * BM if CAUSAL else n
    for start in range(0, last, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + head + columns[None, :] * D + d[:, None])
        scores = tl.dot(query, keys) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= columns, scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + head + columns[:, None] * D + d)
        mixed = tl.dot(weights.to(values.dtype), values, mixed * shrink[:, None])
        top = new_top
    tl.store(out + head + rows[:, None] * D + d, (mixed / total[:, None]).to(out.dtype.element_ty))


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention_agrees_with_torch(causal):
    q, k, v = (torch.randn(2, 128, 32).half() for _ in range(3))
    out = torch.empty_like(q)
    attention[(4, 2)](q, k, v, out, 32**-0.5, 128, D=32, BM=32, BN=32, CAUSAL=causal)
    exact = torch.nn.functional.scaled_dot_product_attention(
        q.float(), k.float(), v.float(), is_causal=causal
    )
    torch.testing.assert_close(out.float(), exact, rtol=4e-3, atol=4e-3)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


def test_atomics_and_scans_agree_with_torch():
    x = torch.randint(0, 10, (1000,), dtype=torch.int32)
    out = torch.zeros(10, dtype=torch.int32)
    histogram[(4,)](x, out, 1000, BLOCK=256)
    assert torch.equal(out, torch.bincount(x, minlength=10).int())
    total = torch.empty(256)
    running_sum[(1,)](torch.arange(256.0), total, BLOCK=256)
    assert torch.equal(total, torch.arange(256.0).cumsum(0))


@triton.jit
def running_sum(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def with_hints(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n, eviction_policy="evict_first")
    tl.store(out + i, values, mask=i < n, eviction_policy="evict_last")


@pytest.mark.parametrize("n", [1000, 1024])
def test_hints_to_the_caches_change_no_result(n):
    """They become createpolicy, and a third operand of the load."""
    x, out = torch.randn(n), torch.zeros(n)
    with_hints[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    assert torch.equal(x, out)


@triton.jit
def square_sums(x, out, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 4), tl.arange(0, BLOCK)
    values = tl.load(x + i[:, None] * n + j[None, :], mask=j[None, :] < n, other=0.0)
    tl.store(out + i, tl.sum(values * values, 1))


def test_lanes_that_all_store_the_same_sum_are_no_race():
    """Half of them add a·a to b·b, half b·b to a·a, with one rounding less on the left: last bits may differ."""
    for seed in range(8):
        x, out = torch.randn(4, 33, generator=torch.Generator().manual_seed(seed)), torch.zeros(4)
        assert not gpulab.sanitize(lambda x, out: square_sums[(1,)](x, out, 33, BLOCK=64), x, out), seed
        torch.testing.assert_close(out, (x * x).sum(1))


@triton.jit
def all_in_one_place(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + 0 * i, tl.load(x + i))


def test_elements_that_are_stored_in_one_place_of_an_array_are_a_race():
    found = gpulab.sanitize(
        lambda x, out: all_in_one_place[(1,)](x, out, BLOCK=128), torch.arange(128.0), torch.zeros(1)
    )
    assert found.of("race") and "out[0]" in str(found)


@triton.jit
def three_loads(x, y, z, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(x + i, mask=inside)
    b = tl.load(y + i, mask=inside, other=1.0)
    c = tl.load(z + i)
    tl.store(out + i, a * b + c, mask=inside)


@pytest.mark.parametrize("n", [1024, 1023])
@pytest.mark.parametrize("block", [32, 1024])
def test_loads_and_stores_stand_on_their_own_lines(n, block):
    """The texts that Triton's loads become have many lines themselves."""
    x, y, z, out = (torch.zeros(1024) for _ in range(4))
    report = gpulab.profile(three_loads[(triton.cdiv(n, block),)], x, y, z, out, n, BLOCK=block)
    loading = [line.text for line in report.lines if line.metrics["global_load_requests"]]
    assert sorted(text[:15] for text in loading) == ["a = tl.load(x +", "b = tl.load(y +", "c = tl.load(z +"]
    storing = [line.text for line in report.lines if line.metrics["global_store_requests"]]
    assert [text[:14] for text in storing] == ["tl.store(out +"]


@pytest.mark.parametrize("dtype, name", [(torch.float16, "float16"), (torch.bfloat16, "bfloat16")])
def test_the_roofline_of_a_product_is_that_of_the_tensor_cores(dtype, name):
    a, b, c = (torch.ones(64, 64, dtype=dtype) for _ in range(3))
    report = gpulab.profile(matmul[(4,)], a, b, c, 64, 64, 64, GROUP=2, BM=32, BN=32, BK=32)
    assert report.roofline is not None
    assert (report.roofline.dtype, report.roofline.tensor) == (name, True)
    assert report.roofline.ridge == gpulab.hardware.roofline(report.gpu, name).ridge
    # 2 · 64³ operations; each element of a and b is loaded twice, each of c stored once.
    assert report.roofline.intensity == pytest.approx(2 * 64**3 / (5 * 64**2 * 2))
    assert report.roofline.bound == "memory"


def test_the_roofline_of_lanes_that_do_most_is_that_of_the_lanes():
    x = torch.ones(64, 64)
    report = gpulab.profile(softmax_rows[(64,)], x, torch.empty_like(x), 64, 64, BLOCK=64)
    assert report.roofline is not None
    assert (report.roofline.dtype, report.roofline.tensor) == ("float32", False)
