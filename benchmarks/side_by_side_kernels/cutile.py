"""The kernels in cuTile."""

from gpulab import tile as ct

INT = ct.Constant[int]


@ct.kernel
def add_kernel(a, b, c, BLOCK: INT):
    i = (ct.bid(0),)
    ct.store(c, index=i, tile=ct.load(a, index=i, shape=(BLOCK,)) + ct.load(b, index=i, shape=(BLOCK,)))


def add(a, b, c):
    ct.launch(0, (-(-c.size // 1024),), add_kernel, (a, b, c, 1024))


@ct.kernel
def transpose_kernel(x, y, B: INT):
    i, j = ct.bid(1), ct.bid(0)
    ct.store(y, index=(j, i), tile=ct.transpose(ct.load(x, index=(i, j), shape=(B, B))))


def transpose(x, y):
    ct.launch(0, (x.shape[1] // 32, x.shape[0] // 32), transpose_kernel, (x, y, 32))


@ct.kernel
def softmax_kernel(x, y, N: INT):
    row = ct.load(x, index=(ct.bid(0), 0), shape=(1, N))
    e = ct.exp(row - ct.max(row, axis=1, keepdims=True))
    ct.store(y, index=(ct.bid(0), 0), tile=e / ct.sum(e, axis=1, keepdims=True))


def softmax(x, y):
    ct.launch(0, (x.shape[0],), softmax_kernel, (x, y, x.shape[1]))


@ct.kernel
def matmul_kernel(a, b, c, B: INT, K: INT):
    i, j = ct.bid(1), ct.bid(0)
    total = ct.full((B, B), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(B, K))):
        left = ct.load(a, index=(i, k), shape=(B, K))
        total = ct.mma(left, ct.load(b, index=(k, j), shape=(K, B)), total)
    ct.store(c, index=(i, j), tile=total)


def matmul(a, b, c):
    ct.launch(0, (c.shape[1] // 64, c.shape[0] // 64), matmul_kernel, (a, b, c, 64, 32))


@ct.kernel
def attention_kernel(q, k, v, out, D: INT, B: INT):
    i = ct.bid(0)
    query = ct.load(q, index=(i, 0), shape=(B, D))
    top = ct.full((B, 1), -float("inf"), dtype=ct.float32)
    total = ct.zeros((B, 1), dtype=ct.float32)
    mixed = ct.zeros((B, D), dtype=ct.float32)
    for j in range(ct.num_tiles(k, axis=0, shape=(B, D))):
        keys = ct.transpose(ct.load(k, index=(j, 0), shape=(B, D)))
        scores = ct.mma(query, keys, ct.zeros((B, B), dtype=ct.float32)) * 0.125
        new_top = ct.maximum(top, ct.max(scores, axis=1, keepdims=True))
        weights, shrink = ct.exp(scores - new_top), ct.exp(top - new_top)
        total = total * shrink + ct.sum(weights, axis=1, keepdims=True)
        values = ct.load(v, index=(j, 0), shape=(B, D))
        mixed = ct.mma(ct.astype(weights, ct.float16), values, mixed * shrink)
        top = new_top
    ct.store(out, index=(i, 0), tile=mixed / total)


def attention(q, k, v, out):
    ct.launch(0, (q.shape[0] // 64,), attention_kernel, (q, k, v, out, 64, 64))
