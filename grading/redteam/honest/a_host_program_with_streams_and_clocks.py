# how: host code that times itself with events, in a stream of its own, and waits after each launch
# exercise: basics.diffuse
import time


@cuda.jit
def _step(source, target):
    i = cuda.grid(1)
    n = source.shape[0]
    if 0 < i < n - 1:
        target[i] = source[i] + 0.25 * (source[i - 1] - 2 * source[i] + source[i + 1])
    elif i < n:
        target[i] = source[i]


def diffuse(rod, out, steps):
    threads = 128
    blocks = (rod.size + threads - 1) // threads
    began = time.perf_counter()
    stream = cuda.stream()
    buffers = [out, cuda.device_array(rod.shape, dtype=rod.dtype)]
    if steps % 2 == 0:
        buffers.reverse()
    current = rod
    for number in range(steps):
        _step[blocks, threads, stream](current, buffers[number % 2])
        current = buffers[number % 2]
        stream.synchronize()
    cuda.synchronize()
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s")
