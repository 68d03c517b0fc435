# how: a lane for each element, so that both paths run; a hundred uniform branches lift the efficiency
# exercise: basics.two_paths
# earns: 2
# says: divergent branches … naive
@cuda.jit
def two_paths(a, out):
    i = cuda.grid(1)
    if i < a.size:
        done = 0
        while done < 100 + a.size // (1 << 30):
            done += 1
        out[i] = grow(a[i]) if i // 16 % 2 == 0 else decay(a[i])
