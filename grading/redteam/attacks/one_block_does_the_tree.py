# how: a tree of eight rounds in one block; seven idle blocks would lower a mean over all warps
# exercise: parallel.total
# earns: 2.8
# says: loaded by a block 0
@cuda.jit
def total(a, out):
    sums = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        mine = np.float32(0)
        for i in range(t, a.size, 256):
            mine += a[i]
        sums[t] = mine
        cuda.syncthreads()
        d = 128
        while d > 0:
            if t < d:
                sums[t] += sums[t + d]
            cuda.syncthreads()
            d //= 2
        if t == 0:
            cuda.atomic.add(out, 0, sums[0])
