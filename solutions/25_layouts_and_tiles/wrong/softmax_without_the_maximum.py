# exercise: tiles.softmax  fails: right  says: should be
from gpulab import tile as ct


@ct.kernel
def softmax_kernel(x, y, N: ct.Constant[int]):
    at = (ct.bid(0), 0)
    row = ct.load(x, index=at, shape=(1, N), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(row)
    ct.store(y, index=at, tile=e / ct.sum(e, axis=1, keepdims=True))


def softmax(x, y):
    width = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(0, (x.shape[0],), softmax_kernel, (x, y, width))
