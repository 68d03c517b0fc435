# how: goes along rows and columns of flat views
# exercise: basics.matmul
@cuda.jit(device=True, inline="always")
def at(flat, row, column, width):
    return flat[row * width + column]


@cuda.jit
def matmul(a, b, c):
    column, row = cuda.grid(2)
    m, n = c.shape
    depth = a.shape[1]
    if row >= m or column >= n:
        return
    af, bf = a.reshape(a.size), b.reshape(b.size)
    s = np.float32(0)
    k = 0
    while k < depth:
        s += at(af, row, k, depth) * at(bf, k, column, n)
        k += 1
    c[row, column] = s
