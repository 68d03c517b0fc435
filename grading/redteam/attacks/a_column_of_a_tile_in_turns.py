# how: fills the tile of a down its columns, one lane after the other: one sector a request
# exercise: gemm.column
# earns: 2
# says: load sectors … naive
@cuda.jit
def column(a, b, c):
    a_tile = cuda.shared.array((64, 8), np.float32)
    b_tile = cuda.shared.array((8, 64), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    sums = cuda.local.array(8, np.float32)
    words = cuda.local.array(8, np.float32)
    for i in range(8):
        sums[i] = 0
    for first in range(0, a.shape[1], 8):
        for lane in range(32):
            if cuda.laneid == lane:
                inside = top + tx < a.shape[0] and first + ty < a.shape[1]
                a_tile[tx, ty] = a[top + tx, first + ty] if inside else 0
        inside = first + ty < a.shape[1] and left + tx < b.shape[1]
        b_tile[ty, tx] = b[first + ty, left + tx] if inside else 0
        cuda.syncthreads()
        for k in range(8):
            words[k] = b_tile[k, tx]
        for i in range(8):
            for k in range(8):
                sums[i] += a_tile[ty + 8 * i, k] * words[k]
        cuda.syncthreads()
    for i in range(8):
        if top + ty + 8 * i < c.shape[0] and left + tx < c.shape[1]:
            c[top + ty + 8 * i, left + tx] = sums[i]
