# how: the guard stands in each round of the tree, too: ten divergent branches where eight do
# exercise: basics.block_sum
@cuda.jit
def block_sum(a, sums):
    s = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if i < a.size:
        s[t] = a[i]
    else:
        s[t] = np.float32(0)
    cuda.syncthreads()
    stride = 128
    while stride > 0:
        if t < stride and i + stride < a.size:
            s[t] += s[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]
