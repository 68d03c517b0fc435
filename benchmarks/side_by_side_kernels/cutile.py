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
