# how: scratch memory that the host fills with zeros before the first launch
# exercise: basics.diffuse
def diffuse(rod, out, steps):
    other = cuda.to_device(np.zeros(rod.size, np.float32))
    buffers = (other, out)
    source = rod
    for step in range(steps):
        target = buffers[(steps - step) % 2]
        one_step[(rod.size + 255) // 256, 256](source, target)
        source = target
