# how: reads the numbers of its point where they lie, a lane after the other
# exercise: memory.unpack
# earns: 1.6
# says: load sectors … naive
@cuda.jit
def unpack(points, xs, ys, zs):
    i = cuda.grid(1)
    for lane in range(32):
        if cuda.laneid == lane and i < xs.size:
            xs[i] = points[3 * i]
            ys[i] = points[3 * i + 1]
            zs[i] = points[3 * i + 2]
