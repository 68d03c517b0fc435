# exercise: basics.block_sum  fails: bytes loaded  says: loaded 2 times
from gpulab import cuda


@cuda.jit
def block_sum(a, sums):
    if cuda.threadIdx.x == 0:
        sums[cuda.blockIdx.x] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(sums, cuda.blockIdx.x, a[i])
