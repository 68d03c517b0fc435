# how: the same sum in another order, divided in the end
# exercise: memory.blur
@cuda.jit
def blur(a, out):
    tile = cuda.shared.array((10, 34), np.float32)
    rows, cols = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    t = ty * 32 + tx
    while t < 340:
        y = cuda.blockIdx.y * 8 - 1 + t // 34
        x = cuda.blockIdx.x * 32 - 1 + t % 34
        tile[t // 34, t % 34] = a[y, x] if 0 <= y < rows and 0 <= x < cols else np.float32(0)
        t += 256
    cuda.syncthreads()
    x, y = cuda.grid(2)
    if x < cols and y < rows:
        total = np.float64(0)
        for dx in (2, 1, 0):
            for dy in (2, 0, 1):
                total += tile[ty + dy, tx + dx]
        out[y, x] = total / 9
