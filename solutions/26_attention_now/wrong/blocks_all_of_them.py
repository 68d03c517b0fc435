# exercise: modern.blocks  fails: operations  says: over all blocks
import triton.language as tl

from gpulab import triton


@triton.jit
def blocks_kernel(q, k, v, counts, lists, out, most, D: tl.constexpr):
    program = tl.program_id(0)
    rows = program * 64 + tl.arange(0, 64)
    across = tl.arange(0, D)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((64,), -float("inf"), tl.float32)
    s = tl.zeros((64,), tl.float32)
    total = tl.zeros((64, D), tl.float32)
    for block in range(tl.num_programs(0)):
        listed = 0
        for turn in range(tl.load(counts + program)):
            listed += (tl.load(lists + program * most + turn) == block).to(tl.int32)
        columns = block * 64 + tl.arange(0, 64)
        keys = tl.load(k + columns[:, None] * D + across)
        values = tl.load(v + columns[:, None] * D + across)
        scores = tl.dot(mine, tl.trans(keys))
        if block == program:
            scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
        scores = tl.where(listed > 0, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        safe = tl.where(larger > -float("inf"), larger, 0.0)
        weights = tl.exp2(scores - safe[:, None])
        old = tl.exp2(largest - safe)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None])


def blocks(q, k, v, counts, lists, out):
    blocks_kernel[(q.shape[0] // 64,)](q, k, v, counts, lists, out, lists.shape[1], D=64)
