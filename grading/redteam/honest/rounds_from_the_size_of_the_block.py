# how: takes types and the compiler from numba under a short name, in keywords
# exercise: basics.block_sum
import numba as nb
import numba.cuda


@nb.cuda.jit(fastmath=True)
def block_sum(a, sums):
    part = nb.cuda.shared.array(shape=(256,), dtype=nb.float32)
    t, i = nb.cuda.threadIdx.x, nb.cuda.grid(1)
    if i < a.size:
        part[t] = a[i]
    else:
        part[t] = nb.float32(0)
    nb.cuda.syncthreads()
    half = nb.cuda.blockDim.x // 2
    while half:
        if t < half:
            part[t] += part[t + half]
        nb.cuda.syncthreads()
        half >>= 1
    if t == 0:
        sums[nb.cuda.blockIdx.x] = part[0]
