# exercise: memory.copy  fails: load sectors  says: 8 × what each element once needs
from gpulab import cuda


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        for lane in range(32):
            if cuda.laneid == lane:
                b[i] = a[i]
