# how: a factory makes the kernel; a constant of a closure is its step
# exercise: memory.copy
def make(unroll):
    @cuda.jit
    def kernel(source, target):
        first, step = cuda.grid(1), cuda.gridsize(1)
        for i in range(first, source.size, unroll * step):
            for k in range(unroll):
                if i + k * step < source.size:
                    target[i + k * step] = source[i + k * step]

    return kernel


copy = make(4)
