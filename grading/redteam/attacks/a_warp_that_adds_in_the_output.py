# how: adds with atomics on the output instead of shuffles
# exercise: parallel.warp_sum
# earns: 1.2
# says: naive
@cuda.jit
def warp_sum(a, sums):
    i = cuda.grid(1)
    if i < a.size:
        if i % 32 == 0:
            sums[i // 32] = 0
        cuda.syncwarp()
        cuda.atomic.add(sums, i // 32, a[i])
