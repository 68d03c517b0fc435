# how: one warp in two takes the even runs of 64, the other the odd ones
# exercise: basics.two_paths
@cuda.jit
def two_paths(a, out):
    i = cuda.grid(1)
    pair, inside = divmod(i, 64)
    animal, k = divmod(inside, 32)
    j = pair * 64 + (k // 16) * 32 + animal * 16 + k % 16
    if j >= a.size:
        return
    if animal:
        out[j] = decay(a[j])
    else:
        out[j] = grow(a[j])
