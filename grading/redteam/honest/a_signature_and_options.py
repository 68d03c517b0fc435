# how: compiled at once for types that it names, with fastmath and a bound on registers
# exercise: memory.copy
@cuda.jit("void(float32[::1], float32[::1])", fastmath=True, max_registers=32)
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
