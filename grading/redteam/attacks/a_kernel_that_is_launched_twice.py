# how: one of gpulab's own kernels whose launch is replaced: a second, larger launch does the work
# exercise: memory.copy
# earns: 0
# slow: yes
# says: is not the one of the exercise
# alone: yes
@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]


whole = type(copy).__getitem__


def twice(kernel, configuration):
    def launch(*arguments):
        whole(kernel, configuration)(*arguments)
        whole(kernel, (64, 256))(*arguments)

    return launch if kernel is copy else whole(kernel, configuration)


type(copy).__getitem__ = twice
