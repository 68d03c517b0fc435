"""Kernels in cuTile that several tests launch."""

from __future__ import annotations

import numpy as np

from gpulab import tile as ct

INT = ct.Constant[int]


@ct.kernel
def add(a, b, c, TILE: INT):
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    y = ct.load(b, index=(i,), shape=(TILE,))
    ct.store(c, index=(i,), tile=x + y)


@ct.kernel
def matmul(a, b, c, M: INT, N: INT, K: INT):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.full((M, N), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        left = ct.load(a, index=(i, k), shape=(M, K))
        right = ct.load(b, index=(k, j), shape=(K, N))
        total = ct.mma(left, right, total)
    ct.store(c, index=(i, j), tile=total)


@ct.kernel
def count(values, counts, TILE: INT):
    ct.atomic_add(counts, ct.load(values, index=(ct.bid(0),), shape=(TILE,)), 1)


@ct.kernel
def printing(values):
    tile = ct.load(values, index=(ct.bid(0),), shape=(4,))
    ct.printf("sum of %d is %f\n", ct.bid(0), ct.sum(tile))


@ct.kernel
def total(arrays, out, TILE: INT):
    found = ct.zeros((TILE,), dtype=ct.float32)
    for i in range(len(arrays)):
        found = found + ct.load(arrays[i], index=(ct.bid(0),), shape=(TILE,))
    ct.store(out, index=(ct.bid(0),), tile=found)


@ct.kernel
def softmax(x, y, N: INT):
    row = ct.load(x, index=(ct.bid(0), 0), shape=(1, N))
    e = ct.exp(row - ct.max(row, axis=1, keepdims=True))
    ct.store(y, index=(ct.bid(0), 0), tile=e / ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def all_to_the_first(values, out, TILE: INT):
    """Every block stores its own tile into the same place."""
    ct.store(out, index=(0,), tile=ct.load(values, index=(ct.bid(0),), shape=(TILE,)))


@ct.kernel
def padded_softmax(x, y, N: INT):
    row = ct.load(x, index=(ct.bid(0), 0), shape=(1, N), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(row - ct.max(row, axis=1, keepdims=True))
    ct.store(y, index=(ct.bid(0), 0), tile=e / ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def stores_a_square(x):
    ct.store(x, index=(0,), tile=ct.zeros((4, 4), ct.float32))


@ct.kernel
def uses_numpy(x):
    ct.store(x, index=(0,), tile=np.exp(ct.load(x, index=(0,), shape=(16,))))


@ct.kernel
def stores_a_word(x):
    ct.store(x, index=(0,), tile="word")


@ct.kernel
def asks_a_tile(x):
    tile = ct.load(x, index=(0,), shape=(16,))
    if tile > 0:
        ct.store(x, index=(0,), tile=2 * tile)


@ct.kernel
def makes_a_list(x):
    tiles = []
    tiles.append(ct.load(x, index=(0,), shape=(16,)))
    ct.store(x, index=(0,), tile=tiles[0])
