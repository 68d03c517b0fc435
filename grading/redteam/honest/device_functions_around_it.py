# how: the work is spread over small device functions, one of them inlined
# exercise: memory.transpose
@cuda.jit(device=True, inline="always")
def inside(array, y, x):
    return y < array.shape[0] and x < array.shape[1]


@cuda.jit(device=True)
def corner():
    return cuda.blockIdx.x * 32, cuda.blockIdx.y * 32


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array(shape=(32, 33), dtype="float32")
    x0, y0 = corner()
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if inside(a, y0 + ty, x0 + tx):
        tile[ty, tx] = a[y0 + ty, x0 + tx]
    cuda.syncthreads()
    if inside(out, x0 + ty, y0 + tx):
        out[x0 + ty, y0 + tx] = tile[tx, ty]
