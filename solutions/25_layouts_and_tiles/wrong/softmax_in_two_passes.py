# exercise: tiles.softmax  fails: loaded bytes  says: second time
from gpulab import tile as ct


@ct.kernel
def softmax_kernel(x, y, N: ct.Constant[int]):
    top = ct.full((1, 1), -float("inf"), dtype=ct.float32)
    s = ct.full((1, 1), 0.0, dtype=ct.float32)
    for i in range(ct.num_tiles(x, axis=1, shape=(1, N))):
        part = ct.load(x, index=(ct.bid(0), i), shape=(1, N), padding_mode=ct.PaddingMode.NEG_INF)
        larger = ct.maximum(top, ct.max(part, axis=1, keepdims=True))
        s = s * ct.exp(top - larger) + ct.sum(ct.exp(part - larger), axis=1, keepdims=True)
        top = larger
    for i in range(ct.num_tiles(x, axis=1, shape=(1, N))):
        part = ct.load(x, index=(ct.bid(0), i), shape=(1, N))
        ct.store(y, index=(ct.bid(0), i), tile=ct.exp(part - top) / s)


def softmax(x, y):
    ct.launch(0, (x.shape[0],), softmax_kernel, (x, y, 128))
