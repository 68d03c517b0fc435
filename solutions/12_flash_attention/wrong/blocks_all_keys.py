# exercise: attention.blocks  fails: loaded bytes  says: naive 81,920
import triton.language as tl

from gpulab import triton


@triton.jit
def blocks_kernel(q, k, v, out, lse, n, m, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    across = tl.arange(0, D)
    there = (rows < n)[:, None]
    mine = tl.load(q + rows[:, None] * D + across, mask=there, other=0.0)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    s = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, D), tl.float32)
    for key in range(0, m, COLUMNS):
        columns = key + tl.arange(0, COLUMNS)
        inside = (columns < m)[:, None]
        keys = tl.load(k + columns[:, None] * D + across, mask=inside, other=0.0)
        values = tl.load(v + columns[:, None] * D + across, mask=inside, other=0.0)
        seen = columns[None, :] <= rows[:, None] + m - n
        scores = tl.where(seen, tl.dot(mine, tl.trans(keys)), -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        old = tl.exp(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None], mask=there)
    tl.store(lse + rows, largest + tl.log(s), mask=rows < n)


def blocks(q, k, v, out, lse):
    n, m = q.shape[0], k.shape[0]
    blocks_kernel[(triton.cdiv(n, 64),)](q, k, v, out, lse, n, m, D=q.shape[1], ROWS=64, COLUMNS=32)
