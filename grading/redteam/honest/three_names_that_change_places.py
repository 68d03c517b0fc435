# how: four names that change places, unrolled by four rows
# exercise: memory.smooth
@cuda.jit
def smooth(a, out):
    c = cuda.grid(1)
    if c >= a.shape[1]:
        return
    rows = a.shape[0]
    p = q = r = np.float32(0)
    for i in range(rows):
        s = a[i, c]
        out[i, c] = np.float32(0.25) * (p + q + r + s)
        p, q, r = q, r, s
