# how: warps add up with shuffles and one atomic into shared memory, where the text uses a loop
# exercise: memory.centre
@cuda.jit
def centre(a, out):
    sums = cuda.shared.array(2, np.float32)
    t = cuda.threadIdx.x
    for first in range(cuda.blockIdx.x * 64, a.size, cuda.gridDim.x * 64):
        width = min(64, a.size - first)
        value = np.float32(0)
        if t < width:
            value = a[first + t]
        total = value
        for step in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, step)
        if t < 64 and t % 32 == 0:
            sums[t // 32] = total
        cuda.syncthreads()
        if t < width:
            out[first + t] = value - (sums[0] + sums[1]) / np.float32(width)
        cuda.syncthreads()
