# how: scores in base two, the reciprocal of the sum, and blocks that take several rows
# exercise: tiles.softmax
LOG2E = 1.4426950408889634


@ct.kernel
def several_rows(x, y, rows, WIDTH: ct.Constant[int], BLOCKS: ct.Constant[int]):
    for row in range(ct.bid(0), rows, BLOCKS):
        scores = ct.load(x, index=(row, 0), shape=(1, WIDTH), padding_mode=ct.PaddingMode.NEG_INF) * LOG2E
        weights = ct.exp2(scores - ct.max(scores, axis=1, keepdims=True))
        ct.store(y, index=(row, 0), tile=weights * (1.0 / ct.sum(weights, axis=1, keepdims=True)))


def softmax(x, y):
    m, n = x.shape
    width = next(1 << bits for bits in range(13) if 1 << bits >= n)
    blocks = max(1, m // 2)
    ct.launch(0, (blocks,), several_rows, (x, y, m, width, blocks))
