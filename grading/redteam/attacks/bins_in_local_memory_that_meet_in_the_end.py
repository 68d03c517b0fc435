# how: counts in 64 counters of each thread, in local memory, which no budget limits
# exercise: parallel.histogram
# earns: 3.4
# says: atomic conflicts 0
# slow: yes
@cuda.jit
def histogram(values, counts):
    bins = cuda.local.array(64, np.int32)
    all_bins = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    for b in range(64):
        bins[b] = 0
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        bins[values[i]] += 1
    if t < 64:
        all_bins[t] = 0
    cuda.syncthreads()
    for b in range(64):
        n = bins[b]
        for d in (16, 8, 4, 2, 1):
            n += cuda.shfl_down_sync(0xFFFFFFFF, n, d)
        if t % 32 == 0:
            cuda.atomic.add(all_bins, b, n)
    cuda.syncthreads()
    if t < 64:
        cuda.atomic.add(counts, t, all_bins[t])
