# how: one copy of the bins for a block; the lanes of a warp take turns, so that none meets another
# exercise: parallel.histogram
# earns: 3.4
# says: atomic conflicts … passes
@cuda.jit
def histogram(values, counts):
    bins = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    if t < 64:
        bins[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        for lane in range(32):
            if cuda.laneid == lane:
                cuda.atomic.add(bins, values[i], 1)
    cuda.syncthreads()
    if t < 64:
        cuda.atomic.add(counts, t, bins[t])
