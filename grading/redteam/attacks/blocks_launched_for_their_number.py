# how: one block compacts the array; an empty kernel in a thousand blocks was enough to have many
# exercise: parallel.compact
# earns: 4.6
# says: loaded by a block … naive
@cuda.jit
def walk(a, out, count):
    of_warps = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    before = int32(0)
    for first in range(0, a.size, 256):
        value = a[first + t] if first + t < a.size else float32(0)
        votes = cuda.ballot_sync(0xFFFFFFFF, value > 0)
        if t % 32 == 0:
            of_warps[t // 32] = cuda.popc(votes)
        cuda.syncthreads()
        place = before + cuda.popc(votes & cuda.lanemask_lt())
        for w in range(8):
            if w < t // 32:
                place += of_warps[w]
            before += of_warps[w]
        if value > 0:
            out[place] = value
        cuda.syncthreads()
    if t == 0:
        count[0] = before


@cuda.jit
def nothing(out):
    pass


def compact(a, out, count):
    nothing[1000, 256](out)
    walk[1, 256](a, out, count)
