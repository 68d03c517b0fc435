# how: visits all blocks, also those above the diagonal, of which it loads nothing
# exercise: modern.mask
# earns: 2
# says: operations
@triton.jit
def mask_kernel(q, k, v, out, n, D: tl.constexpr):
    program = tl.program_id(0)
    rows = program * 64 + tl.arange(0, 64)
    across = tl.arange(0, D)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((64,), -float("inf"), tl.float32)
    s = tl.zeros((64,), tl.float32)
    total = tl.zeros((64, D), tl.float32)
    for first in range(0, n, 64):
        columns = first + tl.arange(0, 64)
        seen = (columns[:, None] >= 0) & (first <= program * 64)
        keys = tl.load(k + columns[:, None] * D + across, mask=seen, other=0.0)
        values = tl.load(v + columns[:, None] * D + across, mask=seen, other=0.0)
        scores = tl.dot(mine, tl.trans(keys))
        scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        old = tl.exp2(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None])


def mask(q, k, v, mask, out):
    mask_kernel[(q.shape[0] // 64,)](q, k, v, out, q.shape[0], D=64)
