# how: visits all blocks, and loads nothing of those that are on no list
# exercise: modern.blocks
# earns: 2
# says: operations 0
@triton.jit
def blocks_kernel(q, k, v, counts, lists, out, most, n, D: tl.constexpr):
    program = tl.program_id(0)
    rows = program * 64 + tl.arange(0, 64)
    across = tl.arange(0, D)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((64,), -float("inf"), tl.float32)
    s = tl.zeros((64,), tl.float32)
    total = tl.zeros((64, D), tl.float32)
    turn = 0
    there = tl.load(counts + program)
    for block in range(n // 64):
        listed = tl.load(lists + program * most + turn, mask=turn < there, other=-1) == block
        columns = block * 64 + tl.arange(0, 64)
        seen = (columns[:, None] >= 0) & listed
        keys = tl.load(k + columns[:, None] * D + across, mask=seen, other=0.0)
        values = tl.load(v + columns[:, None] * D + across, mask=seen, other=0.0)
        scores = tl.dot(mine, tl.trans(keys))
        scores = tl.where((columns[None, :] <= rows[:, None]) & listed, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        safe = tl.where(larger > -float("inf"), larger, 0.0)
        weights = tl.exp2(scores - safe[:, None])
        old = tl.exp2(largest - safe)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
        turn += listed.to(tl.int32)
    tl.store(out + rows[:, None] * D + across, total / s[:, None])


def blocks(q, k, v, counts, lists, out):
    n = q.shape[0]
    blocks_kernel[(n // 64,)](q, k, v, counts, lists, out, lists.shape[1], n, D=64)
