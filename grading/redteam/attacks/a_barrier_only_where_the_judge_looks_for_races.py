# how: has its barrier at small sizes, where the order of warps is varied, and none at large ones
# exercise: memory.transpose
# earns: 0
# says: only by the luck of the order…race in
@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[ty, tx] = a[y, x]
    if a.shape[0] * a.shape[1] < 64 * 64:
        cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + tx
    y = cuda.blockIdx.x * 32 + ty
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = tile[tx, ty]
