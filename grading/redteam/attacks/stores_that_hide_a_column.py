# how: stores down the columns, a lane after the other, so that no request has more than one sector
# exercise: memory.transpose
# earns: 2.4
# says: store sectors … naive
@cuda.jit
def transpose(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        value = a[y, x]
        for lane in range(32):
            if cuda.laneid == lane:
                out[x, y] = value
