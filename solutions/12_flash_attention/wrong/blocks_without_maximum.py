# exercise: attention.blocks  fails: right  says: logits of ±100
import triton.language as tl

from gpulab import triton


@triton.jit
def blocks_kernel(q, k, v, out, lse, n, m, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    across = tl.arange(0, D)
    there = (rows < n)[:, None]
    mine = tl.load(q + rows[:, None] * D + across, mask=there, other=0.0)
    s = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, D), tl.float32)
    for key in range(0, tl.minimum(m, first + ROWS + m - n), COLUMNS):
        columns = key + tl.arange(0, COLUMNS)
        inside = (columns < m)[:, None]
        keys = tl.load(k + columns[:, None] * D + across, mask=inside, other=0.0)
        values = tl.load(v + columns[:, None] * D + across, mask=inside, other=0.0)
        seen = columns[None, :] <= rows[:, None] + m - n
        weights = tl.exp(tl.where(seen, tl.dot(mine, tl.trans(keys)), -float("inf")))
        s += tl.sum(weights, 1)
        total += tl.dot(weights.to(tl.float16), values)
    tl.store(out + rows[:, None] * D + across, total / s[:, None], mask=there)
    tl.store(lse + rows, tl.log(s), mask=rows < n)


def blocks(q, k, v, out, lse):
    n, m = q.shape[0], k.shape[0]
    blocks_kernel[(triton.cdiv(n, 64),)](q, k, v, out, lse, n, m, D=q.shape[1], ROWS=64, COLUMNS=32)
