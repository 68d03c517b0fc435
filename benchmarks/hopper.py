"""Two Triton kernels for the H100 in the simulator, with counts: processor time against the project's goals.

    python benchmarks/hopper.py

A persistent matrix product (512³, float16) whose tiles are copied by the TMA and multiplied by wgmma: under
6 s. Attention forward (1 × 4 × 512 × 64, float16) on tensor descriptors: under 10 s. Each result is compared
with PyTorch's. Both kernels have run once before, so nothing is compiled in the time that is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import gpulab
from gpulab import triton
from gpulab.simulator import device

PROGRAMS = 8  # of the persistent product; each does two of the 16 tiles
TILE, DEPTH = 128, 64
HEADS, LENGTH, WIDTH, ROWS, COLUMNS = 4, 512, 64, 64, 64


@triton.jit
def product(
    a, b, c, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr
):
    across = tl.cdiv(n, TILE)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, TILE) * across, PROGRAMS):
        row, column = tile // across * TILE, tile % across * TILE
        total = tl.zeros((TILE, TILE), tl.float32)
        for at in tl.range(0, k, DEPTH, num_stages=STAGES):
            total = tl.dot(a.load([row, at]), b.load([at, column]), total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, scale, length, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    first = tl.program_id(1) * length
    row = first + tl.program_id(0) * ROWS
    queries = q.load([row, 0])
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    mixed = tl.zeros((ROWS, WIDTH), tl.float32)
    for at in tl.range(first, first + length, COLUMNS, num_stages=2):
        scores = tl.dot(queries, k.load([at, 0]).T) * (scale * 1.4426950408889634)
        above = tl.maximum(top, tl.max(scores, 1))
        weights, kept = tl.exp2(scores - above[:, None]), tl.exp2(top - above)
        total = total * kept + tl.sum(weights, 1)
        mixed = tl.dot(weights.to(tl.float16), v.load([at, 0]), mixed * kept[:, None])
        top = above
    out.store([row, 0], (mixed / total[:, None]).to(tl.float16))


def multiply() -> tuple[Callable[[], object], torch.Tensor, torch.Tensor]:
    """(what launches it, where the result is, what the result should be)."""
    a, b = (torch.randn(512, 512, dtype=torch.float16) for _ in range(2))
    c = torch.empty_like(a)
    described = [
        TensorDescriptor.from_tensor(a, [TILE, DEPTH]),
        TensorDescriptor.from_tensor(b, [DEPTH, TILE]),
    ]
    described.append(TensorDescriptor.from_tensor(c, [TILE, TILE]))
    sizes = {"TILE": TILE, "DEPTH": DEPTH, "PROGRAMS": PROGRAMS, "STAGES": 3}
    return lambda: product[(PROGRAMS,)](*described, 512, 512, 512, **sizes), c, a.float() @ b.float()


def attend() -> tuple[Callable[[], object], torch.Tensor, torch.Tensor]:
    """(what launches it, where the result is, what the result should be)."""
    q, k, v = (torch.randn(HEADS * LENGTH, WIDTH, dtype=torch.float16) for _ in range(3))
    out = torch.empty_like(q)
    described = [
        TensorDescriptor.from_tensor(x, [rows, WIDTH])
        for x, rows in ((q, ROWS), (k, COLUMNS), (v, COLUMNS), (out, ROWS))
    ]
    sizes = {"WIDTH": WIDTH, "ROWS": ROWS, "COLUMNS": COLUMNS}
    exact = torch.nn.functional.scaled_dot_product_attention(
        *(x.view(HEADS, LENGTH, WIDTH).float() for x in (q, k, v))
    )
    run = lambda: attention[(LENGTH // ROWS, HEADS)](*described, WIDTH**-0.5, LENGTH, **sizes)  # noqa: E731
    return run, out, exact.view_as(out)


def main() -> None:
    device.simulate("H100")
    torch.manual_seed(0)
    print(f"{'kernel, with all counts':<44}{'here':>10}   goal")
    for name, case, goal in (
        ("persistent product 512³, float16", multiply, 6),
        (f"attention 1 × {HEADS} × {LENGTH} × {WIDTH}, float16", attend, 10),
    ):
        run, found, exact = case()
        run()
        start = time.process_time()
        gpulab.profile(run)
        seconds = time.process_time() - start
        if not torch.allclose(found.float(), exact, rtol=1e-2, atol=2e-2):
            raise SystemExit(f"{name}: the result is wrong")
        print(f"{name:<44}{seconds:>8.2f} s   under {goal} s")


if __name__ == "__main__":
    main()
