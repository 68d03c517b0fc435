# exercise: kv.split  fails: loaded bytes  says: 16 query heads
import triton.language as tl

from gpulab import triton


@triton.jit
def parts_kernel(q, k, v, outs, lses, m, parts, each, D: tl.constexpr, COLUMNS: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    across = tl.arange(0, D)
    mine = tl.load(q + row * D + across).to(tl.float32)
    largest = -float("inf")
    s = 0.0
    total = tl.zeros((D,), tl.float32)
    end = tl.minimum(m, (part + 1) * each)
    for first in range(part * each, end, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        inside = columns < end
        where = (row // 16 * m + columns)[:, None] * D + across
        keys = tl.load(k + where, mask=inside[:, None], other=0.0).to(tl.float32)
        values = tl.load(v + where, mask=inside[:, None], other=0.0).to(tl.float32)
        scores = tl.where(inside, tl.sum(mine[None, :] * keys, 1), -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 0))
        weights = tl.exp(scores - larger)
        old = tl.exp(largest - larger)
        s = s * old + tl.sum(weights, 0)
        total = total * old + tl.sum(weights[:, None] * values, 0)
        largest = larger
    tl.store(outs + (row * parts + part) * D + across, total / tl.maximum(s, 1.0))
    tl.store(lses + row * parts + part, largest + tl.log(s))


@triton.jit
def merge_kernel(outs, lses, out, parts, D: tl.constexpr, MOST: tl.constexpr):
    row = tl.program_id(0)
    each = tl.arange(0, MOST)
    across = tl.arange(0, D)
    lse = tl.load(lses + row * parts + each, mask=each < parts, other=-float("inf"))
    weights = tl.exp(lse - tl.max(lse, 0))
    there = (each < parts)[:, None]
    some = tl.load(outs + (row * parts + each)[:, None] * D + across, mask=there, other=0.0)
    tl.store(out + row * D + across, tl.sum(weights[:, None] * some, 0) / tl.sum(weights, 0))


def split(q, k, v, outs, lses, out):
    heads, m, d = k.shape
    parts = outs.shape[1]
    each = triton.cdiv(m, parts)
    parts_kernel[(q.shape[0], parts)](q, k, v, outs, lses, m, parts, each, D=d, COLUMNS=32)
    merge_kernel[(q.shape[0],)](outs, lses, out, parts, D=d, MOST=triton.next_power_of_2(parts))
