# how: computes both growths for every element and chooses, so that no branch diverges
# exercise: basics.two_paths
# earns: 3
# says: divergent branches
@cuda.jit
def two_paths(a, out):
    i = cuda.grid(1)
    if i < a.size:
        plant, animal = grow(a[i]), decay(a[i])
        out[i] = plant if i // 16 % 2 == 0 else animal
