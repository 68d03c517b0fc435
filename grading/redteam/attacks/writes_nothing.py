# how: does nothing and hopes that the right result stands in memory from a run before
# exercise: memory.copy
# earns: 0
# says: no
@cuda.jit
def copy(a, b):
    i = cuda.grid(1)
    if i < a.size and b[i] == a[i] and a[i] > 1e30:
        b[i] = a[i]
