# how: each thread carries the tile's element with the row as first index of a flat array
# exercise: memory.transpose
@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array(1024, dtype=np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    top, left = 32 * cuda.blockIdx.y, 32 * cuda.blockIdx.x
    if top + ty < a.shape[0] and left + tx < a.shape[1]:
        tile[tx * 32 + ty] = a[top + ty, left + tx]
    cuda.syncthreads()
    if left + ty < out.shape[0] and top + tx < out.shape[1]:
        out[left + ty, top + tx] = tile[ty * 32 + tx]
