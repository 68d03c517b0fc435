# how: each thread copies its own stretch; requests of a single lane lower the mean of sectors a request
# exercise: memory.copy
# earns: 1.6
# says: load sectors … naive
@cuda.jit
def copy(a, b):
    each = (a.size + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    first = cuda.grid(1) * each
    for i in range(first, min(first + each, a.size)):
        value = a[i]
        if cuda.laneid == 0:
            for k in range(12):
                again = a[(i + 8 * k) % a.size]
                b[i] = again
        b[i] = value
