# how: scratch arrays kept between calls, and streams and events around the launches
# exercise: basics.diffuse
kept = {}


def diffuse(rod, out, steps):
    blocks = (rod.size + 127) // 128
    if rod.shape not in kept:
        kept[rod.shape] = cuda.device_array(rod.shape, rod.dtype)
    other, source = kept[rod.shape], rod
    stream = cuda.stream()
    for step in range(int(steps)):
        target = out if (steps - step) % 2 == 1 else other
        one_step[blocks, 128, stream](source, target)
        source = target
    stream.synchronize()
