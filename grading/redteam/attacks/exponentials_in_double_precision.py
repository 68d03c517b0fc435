# how: two exponentials for each element, in float64, where an exponential is no special function
# exercise: parallel.logsumexp
# earns: 3
# says: instructions … naive
@cuda.jit
def logsumexp(x, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row < x.shape[0]:
        m, s = -math.inf, 0.0
        for column in range(lane, x.shape[1], 32):
            value = float(x[row, column])
            larger = max(m, value)
            if larger > -math.inf:
                s = s * math.exp(m - larger) + math.exp(value - larger)
                m = larger
        for distance in (16, 8, 4, 2, 1):
            other = cuda.shfl_xor_sync(0xFFFFFFFF, m, distance)
            more = cuda.shfl_xor_sync(0xFFFFFFFF, s, distance)
            larger = max(m, other)
            if larger > -math.inf:
                s = s * math.exp(m - larger) + more * math.exp(other - larger)
                m = larger
        if lane == 0:
            out[row] = m + math.log(s) if s > 0 else -math.inf
