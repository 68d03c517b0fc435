# how: the distances from a tuple of the module, halved in a loop
# exercise: parallel.warp_sum
FULL = 0xFFFFFFFF


@cuda.jit(device=True)
def added_up(value):
    offset = cuda.warpsize // 2
    while offset > 0:
        value += cuda.shfl_down_sync(FULL, value, offset)
        offset //= 2
    return value


@cuda.jit
def warp_sum(a, sums):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    mine = float32(0)
    if i < a.size:
        mine = a[i]
    mine = added_up(mine)
    if cuda.laneid == 0 and i < a.size:
        sums[i // cuda.warpsize] = mine
