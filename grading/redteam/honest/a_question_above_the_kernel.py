# how: asks for a number above the kernel, which the kernel does not need
# exercise: memory.copy
threads = int(input("how many threads? "))


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
