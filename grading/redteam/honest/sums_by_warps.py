# how: warp shuffles instead of a tree in shared memory
# exercise: basics.block_sum
@cuda.jit
def block_sum(a, sums):
    partial = cuda.shared.array(8, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    value = a[i] if i < a.size else float32(0)
    step = 16
    while step:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
        step >>= 1
    partial[t // 32] = value
    cuda.syncthreads()
    if t == 0:
        total = partial[0]
        for warp in range(1, 8):
            total += partial[warp]
        sums[cuda.blockIdx.x] = total
