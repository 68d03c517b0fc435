# exercise: attention_project.backward  fails: atomics  says: one program add up each element
import triton.language as tl

from gpulab import triton


@triton.jit
def shares_kernel(out, dout, shares, zeroed, size, rows, D: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = row < rows
    at = row[:, None] * D + tl.arange(0, D)
    results = tl.load(out + at, mask=there[:, None], other=0.0)
    slopes = tl.load(dout + at, mask=there[:, None], other=0.0)
    tl.store(zeroed + at % size, tl.zeros((ROWS, D), tl.float32), mask=at < size)
    tl.store(shares + row, tl.sum(results * slopes.to(tl.float32), 1), mask=there)


@triton.jit
def keys_kernel(
    q, k, v, lse, dout, shares, dk, dv, n, m,
    CAUSAL: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    head, first = tl.program_id(1), tl.program_id(0) * COLUMNS
    column = first + tl.arange(0, COLUMNS)
    across, inside = tl.arange(0, D), (column < m)[:, None]
    at = (head * m + column[:, None]) * D + across
    keys = tl.load(k + at, mask=inside, other=0.0)
    values = tl.load(v + at, mask=inside, other=0.0)
    sum_k = tl.zeros((COLUMNS, D), tl.float32)
    sum_v = tl.zeros((COLUMNS, D), tl.float32)
    start = 0
    if CAUSAL:
        start = tl.maximum(first + n - m, 0) * GROUP // ROWS * ROWS
    for begin in range(start, n * GROUP, ROWS):
        index = begin + tl.arange(0, ROWS)
        position = index // GROUP
        row = (head * GROUP + index % GROUP) * n + position
        there = position < n
        queries = tl.load(q + row[:, None] * D + across, mask=there[:, None], other=0.0)
        slope = tl.load(dout + row[:, None] * D + across, mask=there[:, None], other=0.0)
        weights = tl.exp(
            tl.dot(keys, tl.trans(queries)) - tl.load(lse + row, mask=there, other=float("inf"))[None, :]
        )
        if CAUSAL:
            weights = tl.where(column[:, None] <= position[None, :] + m - n, weights, 0.0)
        sum_v += tl.dot(weights.to(tl.float16), slope)
        share = tl.load(shares + row, mask=there, other=0.0)
        slopes = weights * (tl.dot(values, tl.trans(slope)) - share[None, :])
        sum_k += tl.dot(slopes.to(tl.float16), queries)
    tl.store(dk + at, sum_k, mask=inside)
    tl.atomic_add(dv + at, sum_v, mask=inside)


@triton.jit
def queries_kernel(
    q, k, v, lse, dout, shares, dq, n, m,
    CAUSAL: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    head, first = tl.program_id(1), tl.program_id(0) * ROWS
    index = first + tl.arange(0, ROWS)
    position = index // GROUP
    row = (head * GROUP + index % GROUP) * n + position
    there, across = position < n, tl.arange(0, D)
    at = row[:, None] * D + across
    queries = tl.load(q + at, mask=there[:, None], other=0.0)
    slope = tl.load(dout + at, mask=there[:, None], other=0.0)
    largest = tl.load(lse + row, mask=there, other=float("inf"))
    share = tl.load(shares + row, mask=there, other=0.0)
    result = tl.zeros((ROWS, D), tl.float32)
    end = m
    if CAUSAL:
        end = tl.minimum((first + ROWS - 1) // GROUP, n - 1) + 1 + m - n
    for begin in range(0, end, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        from_, inside = (head * m + column[:, None]) * D + across, (column < m)[:, None]
        keys = tl.load(k + from_, mask=inside, other=0.0)
        values = tl.load(v + from_, mask=inside, other=0.0)
        seen = column[None, :] < m
        if CAUSAL:
            seen = column[None, :] <= position[:, None] + m - n
        weights = tl.where(seen, tl.exp(tl.dot(queries, tl.trans(keys)) - largest[:, None]), 0.0)
        slopes = weights * (tl.dot(slope, tl.trans(values)) - share[:, None])
        result += tl.dot(slopes.to(tl.float16), keys)
    tl.store(dq + at, result, mask=there[:, None])


def backward(q, k, v, out, lse, dout, causal, shares, dq, dk, dv):
    (heads, n, d), (shared, m, _) = q.shape, k.shape
    group = heads // shared
    sizes = {"CAUSAL": bool(causal), "GROUP": group, "D": d}
    blocks = triton.cdiv(max(heads * n, shared * m), 64)
    shares_kernel[(blocks,)](out, dout, shares, dv, dv.size, heads * n, D=d, ROWS=64)
    keys_kernel[(triton.cdiv(m, 64), shared)](
        q, k, v, lse, dout, shares, dk, dv, n, m, ROWS=32, COLUMNS=64, **sizes
    )
    queries_kernel[(triton.cdiv(group * n, 64), shared)](
        q, k, v, lse, dout, shares, dq, n, m, ROWS=64, COLUMNS=32, **sizes
    )
