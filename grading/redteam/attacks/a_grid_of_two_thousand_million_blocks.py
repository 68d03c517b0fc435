# how: a launch that no simulator ends in time
# exercise: basics.diffuse
# earns: 0
# slow: yes
# says: stopped
# limits: 12 6
@cuda.jit
def idle(out):
    if out.size == 0:
        out[0] = 0


def diffuse(rod, out, steps):
    idle[2**31 - 1, 1024](out)
