# how: two exponentials for each element, worked out in integers, which are no operations on floats
# exercise: parallel.logsumexp
# earns: 3
# says: instructions 0
@cuda.jit(device=True)
def power(d):
    """e to the d, of a d that is not positive: 2 to the k, times a polynomial of the fraction, in 30 bits."""
    if d < float32(-80):
        return float32(0)
    x = (
        np.int64(np.float64(d) * 1549082004.6) if False else np.int64(d * float32(1549082005.0))
    )  # log2(e) * 2^30
    k, f = x >> 30, x & 0x3FFFFFFF
    p = np.int64(1419)
    p = 16378 + ((p * f) >> 30)
    p = 165394 + ((p * f) >> 30)
    p = 1431679 + ((p * f) >> 30)
    p = 10327388 + ((p * f) >> 30)
    p = 59597084 + ((p * f) >> 30)
    p = 257941248 + ((p * f) >> 30)
    p = 744261118 + ((p * f) >> 30)
    p = (p * f) >> 30
    return cuda.libdevice.int_as_float(np.int32(((k + 127) << 23) + ((p + 64) >> 7)))


@cuda.jit
def logsumexp(x, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row < x.shape[0]:
        m, s = float32(-math.inf), float32(0)
        for column in range(lane, x.shape[1], 32):
            value = x[row, column]
            larger = max(m, value)
            if larger > float32(-math.inf):
                s = s * power(m - larger) + power(value - larger)
                m = larger
        for distance in (16, 8, 4, 2, 1):
            other_m = cuda.shfl_xor_sync(0xFFFFFFFF, m, distance)
            other_s = cuda.shfl_xor_sync(0xFFFFFFFF, s, distance)
            both = max(m, other_m)
            if both > float32(-math.inf):
                s = s * power(m - both) + other_s * power(other_m - both)
            m = both
        if lane == 0:
            out[row] = m + math.log(s)
