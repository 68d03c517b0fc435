# how: rows along x, so that loads scatter, but a lane after the other: one sector a request
# exercise: basics.matmul
# earns: 2
# says: load sectors … naive
@cuda.jit
def matmul(a, b, c):
    threads = cuda.blockDim.x * cuda.gridDim.x * cuda.blockDim.y * cuda.gridDim.y
    x, y = cuda.grid(2)
    for k in range(x + y * cuda.blockDim.x * cuda.gridDim.x, c.size, threads):
        row, col = k % c.shape[0], k // c.shape[0]
        total = float32(0.0)
        for i in range(a.shape[1]):
            for lane in range(32):
                if cuda.laneid == lane:
                    total += a[row, i] * b[i, col]
        c[row, col] = total
