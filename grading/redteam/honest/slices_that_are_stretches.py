# how: a slice is a stretch of the sum and not every so many tiles
# exercise: gemm.split_k
@cuda.jit
def split_k(a, b, c):
    left = cuda.shared.array((16, 16), np.float32)
    right = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = 16 * cuda.blockIdx.x + tx, 16 * cuda.blockIdx.y + ty
    tiles = (a.shape[1] + 15) // 16
    each = (tiles + cuda.gridDim.z - 1) // cuda.gridDim.z
    s = np.float32(0)
    for tile in range(each * cuda.blockIdx.z, min(tiles, each * (cuda.blockIdx.z + 1))):
        k = 16 * tile
        left[ty, tx] = a[y, k + tx] if y < a.shape[0] and k + tx < a.shape[1] else 0
        right[ty, tx] = b[k + ty, x] if k + ty < b.shape[0] and x < b.shape[1] else 0
        cuda.syncthreads()
        for j in range(16):
            s += left[ty, j] * right[j, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        cuda.atomic.add(c, (y, x), s)
