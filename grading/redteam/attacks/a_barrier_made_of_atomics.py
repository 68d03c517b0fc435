# how: a tree with eight rounds whose warps wait for one another at a counter in shared memory, and not at a barrier
# exercise: parallel.total
# earns: 3.2
# says: barriers … hand-overs
@cuda.jit
def total(a, out):
    s = cuda.shared.array(256, np.float32)
    arrived = cuda.shared.array(1, np.int32)
    t = cuda.threadIdx.x
    value = np.float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    s[t] = value
    if t == 0:
        arrived[0] = 0
    cuda.syncthreads()
    distance, wanted = 128, 256
    while distance > 0:
        if t < distance:
            s[t] += s[t + distance]
        cuda.threadfence_block()
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < wanted:
            cuda.nanosleep(20)
        cuda.threadfence_block()
        distance //= 2
        wanted += 256
    if t == 0:
        cuda.atomic.add(out, 0, s[0])
