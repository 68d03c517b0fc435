# how: threads that wait for one another for ever
# exercise: memory.copy
# earns: 0
# says: instructions
@cuda.jit
def copy(a, b):
    i = cuda.grid(1)
    while a[0] == a[0]:
        b[i % b.size] = a[i % b.size]
