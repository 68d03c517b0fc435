# how: no padding, but the lanes read the column of the tile one after the other: no request has a conflict
# exercise: memory.padded
# earns: 2.2
# says: bank conflicts … naive
@cuda.jit
def padded(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + tx
    y = cuda.blockIdx.x * 32 + ty
    if x < a.shape[0] and y < a.shape[1]:
        value = np.float32(0)
        for lane in range(32):
            if cuda.laneid == lane:
                value = tile[tx, ty]
        out[y, x] = value
