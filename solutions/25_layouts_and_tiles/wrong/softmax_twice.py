# exercise: tiles.softmax  fails: exponentials  says: taken twice
from gpulab import tile as ct


@ct.kernel
def softmax_kernel(x, y, N: ct.Constant[int]):
    at = (ct.bid(0), 0)
    row = ct.load(x, index=at, shape=(1, N), padding_mode=ct.PaddingMode.NEG_INF)
    top = ct.max(row, axis=1, keepdims=True)
    s = ct.sum(ct.exp(row - top), axis=1, keepdims=True)
    again = row - ct.max(row * 1.0000001 + 1e-7, axis=1, keepdims=True)
    ct.store(y, index=at, tile=ct.exp(again) / s)


def softmax(x, y):
    width = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(0, (x.shape[0],), softmax_kernel, (x, y, width))
