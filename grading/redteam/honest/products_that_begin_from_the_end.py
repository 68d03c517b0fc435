# how: the sum over k runs from the last to the first, with an early return after the barrier
# exercise: gemm.batched
@cuda.jit
def batched(a, b, c):
    left = cuda.shared.array(256, np.float32)
    right = cuda.shared.array(256, np.float32)
    x, y, which = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x
    n = c.shape[2]
    if which < c.shape[0] and y < n and x < n:
        left[16 * y + x] = a[which, y, x]
        right[16 * y + x] = b[which, y, x]
    cuda.syncthreads()
    if which >= c.shape[0] or y >= n or x >= n:
        return
    total = np.float32(0)
    for k in range(n - 1, -1, -1):
        total += left[16 * y + k] * right[16 * k + x]
    c[which, y, x] = total
