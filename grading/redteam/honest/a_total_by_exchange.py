# how: shuffles by exclusive or in both stages, in a device function, with a warp chosen by its number
# exercise: parallel.total
@cuda.jit(device=True)
def sum_of_warp(value):
    step = 16
    while step >= 1:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
        step //= 2
    return value


@cuda.jit
def total(a, out):
    partial = cuda.shared.array(shape=(32,), dtype=float32)
    thread = cuda.threadIdx.x
    warp, lane = thread // 32, thread % 32
    mine = float32(0.0)
    i = cuda.grid(1)
    while i < a.shape[0]:
        mine += a[i]
        i += cuda.gridsize(1)
    mine = sum_of_warp(mine)
    if lane == 0:
        partial[warp] = mine
    cuda.syncthreads()
    if warp == 0:
        mine = partial[lane] if lane < cuda.blockDim.x // 32 else float32(0.0)
        mine = sum_of_warp(mine)
        if lane == 0:
            cuda.atomic.add(out, 0, mine)
