# how: stretches again, but one lane after the other, so that no request has more than one sector
# exercise: basics.saxpy
# earns: 2
# says: load sectors … naive
@cuda.jit
def saxpy(alpha, x, y):
    each = (y.size + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    first = cuda.grid(1) * each
    for i in range(first, min(first + each, y.size)):
        for lane in range(32):
            if cuda.laneid == lane:
                y[i] = alpha * x[i] + y[i]
