# how: written like C, with a while loop, indices from blockIdx and early returns
# exercise: memory.copy
@cuda.jit
def copy(a, b):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    n = a.shape[0]
    if i >= n:
        return
    while True:
        b[i] = a[i]
        i += cuda.blockDim.x * cuda.gridDim.x
        if i >= n:
            return
