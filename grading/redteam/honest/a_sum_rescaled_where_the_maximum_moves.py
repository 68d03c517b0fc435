# how: rescales only where the maximum moves, and merges by the smaller of both
# exercise: parallel.logsumexp
@cuda.jit
def logsumexp(x, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row >= x.shape[0]:
        return
    m, s = float32(-math.inf), float32(0)
    for column in range(lane, x.shape[1], 32):
        v = x[row, column]
        if v > m:
            s = s * math.exp(m - v) + float32(1)
            m = v
        elif v > float32(-math.inf):
            s += math.exp(v - m)
    for d in (16, 8, 4, 2, 1):
        n = cuda.shfl_xor_sync(0xFFFFFFFF, m, d)
        r = cuda.shfl_xor_sync(0xFFFFFFFF, s, d)
        if n > m:
            s = r + s * math.exp(m - n)
            m = n
        elif n > float32(-math.inf):
            s += r * math.exp(n - m)
    if lane == 0:
        out[row] = m + math.log(s)
