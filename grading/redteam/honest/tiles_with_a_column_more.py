# how: tiles that are one column wider than they need
# exercise: gemm.tiled
@cuda.jit
def tiled(a, b, c):
    left = cuda.shared.array((32, 33), np.float32)
    right = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    s = np.float32(0)
    for tile in range((a.shape[1] + 31) // 32):
        k = 32 * tile
        left[ty, tx] = 0
        right[ty, tx] = 0
        if y < a.shape[0] and k + tx < a.shape[1]:
            left[ty, tx] = a[y, k + tx]
        if k + ty < b.shape[0] and x < b.shape[1]:
            right[ty, tx] = b[k + ty, x]
        cuda.syncthreads()
        for j in range(32):
            s += left[ty, j] * right[j, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = s
