# how: loads the tile with its frame row by row, warps take rows
# exercise: memory.blur
@cuda.jit
def blur(a, out):
    tile = cuda.shared.array((10, 34), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x0, y0 = 32 * cuda.blockIdx.x - 1, 8 * cuda.blockIdx.y - 1
    for r in range(ty, 10, 8):
        for c in range(tx, 34, 32):
            y, x = y0 + r, x0 + c
            inside = y >= 0 and x >= 0 and y < a.shape[0] and x < a.shape[1]
            tile[r, c] = a[y, x] if inside else 0
    cuda.syncthreads()
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        s = np.float32(0)
        for r in range(ty, ty + 3):
            s += tile[r, tx] + tile[r, tx + 1] + tile[r, tx + 2]
        out[y, x] = s / 9
