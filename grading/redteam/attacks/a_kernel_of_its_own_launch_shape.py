# how: an object that looks like a kernel and launches another one, as often and as large as it likes
# exercise: memory.copy
# earns: 0
# says: kernel
@cuda.jit
def inner(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]


class Kernel:
    py_func = inner.py_func

    def __getitem__(self, configuration):
        return lambda a, b: (inner[1, 32](a, b), inner[64, 256](a, b))

    def __call__(self, a, b):
        inner[1, 32](a, b)


copy = Kernel()
