# how: one program does all parts of a head; 40 idle ones beside it lower the mean of what a block loads
# exercise: kv.split
# earns: 4
# says: loaded by a block … naive
@triton.jit
def parts_kernel(
    q, k, v, outs, lses, m, parts, each, D: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr
):
    head = tl.program_id(0)
    rows = head * GROUP + tl.arange(0, GROUP)
    across = tl.arange(0, D)
    mine = tl.load(q + rows[:, None] * D + across)
    busy = tl.where(tl.program_id(1) == 0, parts, 0)
    for part in range(busy):
        largest = tl.full((GROUP,), -float("inf"), tl.float32)
        s = tl.zeros((GROUP,), tl.float32)
        total = tl.zeros((GROUP, D), tl.float32)
        end = tl.minimum(m, (part + 1) * each)
        for first in range(part * each, end, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            inside = columns < end
            where = (head * m + columns)[:, None] * D + across
            keys = tl.load(k + where, mask=inside[:, None], other=0.0)
            values = tl.load(v + where, mask=inside[:, None], other=0.0)
            scores = tl.where(inside[None, :], tl.dot(mine, tl.trans(keys)), -float("inf"))
            larger = tl.maximum(largest, tl.max(scores, 1))
            weights = tl.exp(scores - larger[:, None])
            old = tl.exp(largest - larger)
            s = s * old + tl.sum(weights, 1)
            total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
            largest = larger
        to = rows * parts + part
        tl.store(outs + to[:, None] * D + across, total / tl.maximum(s, 1.0)[:, None])
        tl.store(lses + to, largest + tl.log(s))


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
    parts_kernel[(heads, 41)](q, k, v, outs, lses, m, parts, each, D=d, GROUP=16, COLUMNS=32)
    merge_kernel[(q.shape[0],)](outs, lses, out, parts, D=d, MOST=triton.next_power_of_2(parts))
