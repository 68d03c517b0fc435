# how: reads the input on the host, computes with NumPy and copies the result back
# exercise: basics.diffuse
# earns: 0
# says: reads
def diffuse(rod, out, steps):
    old = rod.copy_to_host()
    for _ in range(steps):
        new = old.copy()
        new[1:-1] = old[1:-1] + 0.25 * (old[:-2] - 2 * old[1:-1] + old[2:])
        old = new
    out.copy_to_device(old)
