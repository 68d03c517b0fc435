# how: one warp of all 64 adds up the array, so nobody needs a barrier
# exercise: parallel.total
# earns: 2.8
# says: loaded by a block 0
@cuda.jit
def total(a, out):
    if cuda.blockIdx.x > 0 or cuda.threadIdx.x >= 32:
        return
    lane = cuda.threadIdx.x
    value = float32(0)
    for i in range(lane, a.size, 32):
        value += a[i]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if lane == 0:
        cuda.atomic.add(out, 0, value)
