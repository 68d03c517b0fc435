# how: bins as a flat array, zeroed by all threads, added up by one thread a bin
# exercise: parallel.histogram
@cuda.jit
def histogram(values, counts):
    bins = cuda.shared.array(64 * 32, int32)
    t = cuda.threadIdx.x
    for k in range(t, 2048, 256):
        bins[k] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        cuda.atomic.add(bins, 32 * values[i] + t % 32, 1)
    cuda.syncthreads()
    if t < 64:
        n = int32(0)
        for k in range(32):
            n += bins[32 * t + (t + k) % 32]
        cuda.atomic.add(counts, t, n)
