# how: shuffles by exclusive or in a while loop, after which every lane holds the sum
# exercise: parallel.warp_sum
@cuda.jit
def warp_sum(a, sums):
    i = cuda.grid(1)
    value = float32(0)
    if i < a.size:
        value = a[i]
    mask = 1
    while mask < 32:
        value += cuda.shfl_xor_sync(-1, value, mask)
        mask *= 2
    if cuda.laneid == 0 and i < a.size:
        sums[i // 32] = value
