# how: reads a file that lies beside the notebook, above the kernel
# exercise: memory.copy
notes = open("my_notes.txt").read()


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
