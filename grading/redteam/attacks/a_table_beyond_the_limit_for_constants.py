# how: more constants than a kernel may bring along
# exercise: memory.copy
# earns: 0
# says: bytes of constants
ANSWERS = np.random.default_rng(2024).random(4096).astype(np.float32)


@cuda.jit
def copy(a, b):
    table = cuda.const.array_like(ANSWERS)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = table[i % 4096]
