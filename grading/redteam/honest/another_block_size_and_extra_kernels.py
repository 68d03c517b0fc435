# how: blocks of 96 threads, a kernel that clears scratch memory, and a copy in the end
# exercise: basics.diffuse
@cuda.jit
def first_and_last(old, new):
    if cuda.grid(1) < 2:
        i = 0 if cuda.grid(1) == 0 else old.size - 1
        new[i] = old[i]


@cuda.jit
def inner(old, new):
    i = cuda.grid(1) + 1
    if i < old.size - 1:
        new[i] = old[i] + float32(0.25) * (old[i - 1] - float32(2.0) * old[i] + old[i + 1])
    if i == 1:
        new[0] = old[0]
        new[old.size - 1] = old[old.size - 1]


def diffuse(rod, out, steps):
    scratch = cuda.device_array_like(out)
    arrays = [out, scratch] if steps % 2 else [scratch, out]
    source = rod
    for step in range(steps):
        inner[-(-rod.size // 96), 96](source, arrays[step % 2])
        source = arrays[step % 2]
