# how: two passes over a row that each lane keeps in local memory
# exercise: parallel.logsumexp
# earns: 3
# says: instructions 0
@cuda.jit
def logsumexp(x, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    held = cuda.local.array(512, np.float32)
    if row < x.shape[0]:
        m = np.float32(-math.inf)
        n = 0
        for column in range(lane, x.shape[1], 32):
            held[n] = x[row, column]
            m = max(m, held[n])
            n += 1
        for d in (16, 8, 4, 2, 1):
            m = max(m, cuda.shfl_xor_sync(0xFFFFFFFF, m, d))
        s = np.float32(0)
        for k in range(n):
            if m > -math.inf:
                s += math.exp(held[k] - m)
        for d in (16, 8, 4, 2, 1):
            s += cuda.shfl_xor_sync(0xFFFFFFFF, s, d)
        if lane == 0:
            out[row] = m + math.log(s)
