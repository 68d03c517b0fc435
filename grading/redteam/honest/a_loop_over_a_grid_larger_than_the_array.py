# how: a grid-stride loop where one element a thread would do
# exercise: start.double
@cuda.jit
def double(a, out):
    start = cuda.grid(1)
    step = cuda.gridsize(1)
    for i in range(start, a.shape[0], step):
        out[i] = 2 * a[i]
