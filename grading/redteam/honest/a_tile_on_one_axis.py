# how: shared memory on one axis with indices worked out by hand, and a barrier too many
# exercise: memory.padded
@cuda.jit
def padded(a, out):
    tile = cuda.shared.array(32 * 33, np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * 32 + ty, cuda.blockIdx.x * 32 + tx
    cuda.syncthreads()
    if row < a.shape[0] and col < a.shape[1]:
        tile[ty * 33 + tx] = a[row, col]
    cuda.syncthreads()
    row, col = cuda.blockIdx.x * 32 + ty, cuda.blockIdx.y * 32 + tx
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[tx * 33 + ty]
