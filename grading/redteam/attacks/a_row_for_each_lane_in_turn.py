# how: a thread for each row, one lane after the other: no request has more than one sector, and bytes are few
# exercise: gemm.matvec
# earns: 1.6
# says: load sectors … naive
# slow: yes
@cuda.jit
def matvec(a, x, y):
    first = cuda.blockIdx.x * 64
    t = cuda.threadIdx.y * 32 + cuda.threadIdx.x
    row = first + t
    kept = cuda.shared.array(512, np.float32)
    total = np.float32(0)
    for start in range(0, a.shape[1], 512):
        cuda.syncthreads()
        for k in range(t, min(512, a.shape[1] - start), 256):
            kept[k] = x[start + k]
        cuda.syncthreads()
        for k in range(min(512, a.shape[1] - start)):
            for lane in range(32):
                if cuda.laneid == lane and t < 64 and row < a.shape[0]:
                    total += a[row, start + k] * kept[k]
    if t < 64 and row < a.shape[0]:
        y[row] = total
