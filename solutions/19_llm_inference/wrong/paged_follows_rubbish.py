# exercise: kv.paged  fails: right  says: belongs to no array
import triton.language as tl

from gpulab import triton


@triton.jit
def paged_kernel(
    q, k, v, tables, lengths, out, width, D: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr
):
    sequence = tl.program_id(0)
    rows = sequence * GROUP + tl.arange(0, GROUP)
    across = tl.arange(0, D)
    slots = tl.arange(0, SIZE)
    length = tl.load(lengths + sequence)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((GROUP,), -float("inf"), tl.float32)
    s = tl.zeros((GROUP,), tl.float32)
    total = tl.zeros((GROUP, D), tl.float32)
    for first in range(0, width * SIZE, SIZE):
        block = tl.load(tables + sequence * width + first // SIZE)
        inside = first + slots < length
        where = (block * SIZE + slots)[:, None] * D + across
        keys = tl.load(k + where)
        values = tl.load(v + where)
        scores = tl.where(inside[None, :], tl.dot(mine, tl.trans(keys)), -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        old = tl.exp(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None])


def paged(q, k, v, tables, lengths, out):
    sequences, width = tables.shape
    paged_kernel[(sequences,)](
        q, k, v, tables, lengths, out, width, D=q.shape[2], GROUP=q.shape[1], SIZE=k.shape[1]
    )
