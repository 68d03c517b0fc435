# how: one launch for all steps, with barriers that hold within a block: neighbours in other blocks are read too early
# exercise: basics.diffuse
# earns: 0
# says: but only by the luck of the order in which things happen
@cuda.jit
def march(rod, here, there, steps):
    me = cuda.grid(1)
    if me < rod.size:
        here[me] = rod[me]
    cuda.syncthreads()
    for step in range(steps):
        if me < rod.size:
            new = here[me]
            if 0 < me < rod.size - 1:
                new += np.float32(0.25) * (here[me - 1] + here[me + 1] - np.float32(2.0) * here[me])
            there[me] = new
        cuda.syncthreads()
        if me < rod.size:
            here[me] = there[me]
        cuda.syncthreads()


def diffuse(rod, out, steps):
    march[-(-rod.size // 128), 128](rod, out, cuda.device_array_like(out), steps)
