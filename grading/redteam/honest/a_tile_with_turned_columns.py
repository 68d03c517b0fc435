# how: no padding: the column is turned by the row
# exercise: memory.padded
@cuda.jit
def padded(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        tile[ty, tx ^ ty] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * cuda.blockDim.y + tx
    y = cuda.blockIdx.x * cuda.blockDim.x + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty ^ tx]
