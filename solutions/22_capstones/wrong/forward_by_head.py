# exercise: attention_project.forward  fails: loaded bytes, causal  says: naive 344,064
import triton.language as tl

from gpulab import triton


@triton.jit
def naive_kernel(
    q, k, v, out, lse, n, m, causal, group, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    head = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    across = tl.arange(0, D)
    there = (rows < n)[:, None]
    k += head // group * m * D
    v += head // group * m * D
    mine = tl.load(q + (head * n + rows[:, None]) * D + across, mask=there, other=0.0)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    s = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, D), tl.float32)
    for key in range(0, m, COLUMNS):
        columns = key + tl.arange(0, COLUMNS)
        inside = (columns < m)[:, None]
        keys = tl.load(k + columns[:, None] * D + across, mask=inside, other=0.0)
        values = tl.load(v + columns[:, None] * D + across, mask=inside, other=0.0)
        seen = (columns[None, :] < m) & ((causal == 0) | (columns[None, :] <= rows[:, None] + m - n))
        scores = tl.where(seen, tl.dot(mine, tl.trans(keys)), -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        old = tl.exp(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + (head * n + rows[:, None]) * D + across, total / s[:, None], mask=there)
    tl.store(lse + head * n + rows, largest + tl.log(s), mask=rows < n)


def forward(q, k, v, out, lse, causal):
    (heads, n, d), (shared, m, _) = q.shape, k.shape
    sizes = {"D": d, "ROWS": 64, "COLUMNS": 32}
    naive_kernel[(triton.cdiv(n, 64), heads)](q, k, v, out, lse, n, m, causal, heads // shared, **sizes)
