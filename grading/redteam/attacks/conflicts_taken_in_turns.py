# how: reads a tile of a down its columns from 32 lanes of one bank, one lane after the other
# exercise: gemm.tiled
# earns: 3.6
# says: bank conflicts
# slow: yes
@cuda.jit
def tiled(a, b, c):
    a_tile = cuda.shared.array((32, 32), np.float32)
    b_tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * 32 + tx, cuda.blockIdx.y * 32 + ty
    total = np.float32(0)
    for first in range(0, a.shape[1], 32):
        a_tile[ty, tx] = a[row, first + tx] if row < a.shape[0] and first + tx < a.shape[1] else 0
        value = b[first + ty, col] if first + ty < a.shape[1] and col < b.shape[1] else 0
        for lane in range(32):
            if cuda.laneid == lane:
                b_tile[tx, ty] = value
        cuda.syncthreads()
        for k in range(32):
            for lane in range(32):
                if cuda.laneid == lane:
                    total += a_tile[ty, k] * b_tile[tx, k]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total
