# how: takes each exponential twice, as polynomials of products and sums, so that no special function is called
# exercise: tiles.softmax
# earns: 3
# says: exponentials taken
@ct.kernel
def softmax_kernel(x, y, N: ct.Constant[int]):
    at = (ct.bid(0), 0)
    row = ct.load(x, index=at, shape=(1, N), padding_mode=ct.PaddingMode.NEG_INF)
    largest = ct.max(row, axis=1, keepdims=True)
    total = ct.full((1, 1), 0.0, ct.float32)
    for turn in range(2):
        z = ct.maximum((row - largest) * 1.4426950408889634, -126.0)
        whole = (z + 12582912.0) - 12582912.0
        f = z - whole
        p = f * 0.0013333558 + 0.0096181291
        p = p * f + 0.055504109
        p = p * f + 0.24022651
        p = p * f + 0.69314718
        p = p * f + 1.0
        left = whole * -1.0
        power = 64.0
        factor = 2.0**-64
        for bit in ct.static_iter(range(7)):
            high = left >= power
            left = ct.where(high, left - power, left)
            p = ct.where(high, p * factor, p)
            power = power / 2.0
            factor = factor**0.5
        if turn == 0:
            total = ct.sum(p, axis=1, keepdims=True)
        else:
            ct.store(y, index=at, tile=p / total)


def softmax(x, y):
    width = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(0, (x.shape[0],), softmax_kernel, (x, y, width))
