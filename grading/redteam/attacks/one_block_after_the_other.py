# how: one block at a time, each in a launch of its own that goes on where the last one stopped
# exercise: parallel.compact
# earns: 4.6
# says: loaded by a block 0
@cuda.jit
def one_block(a, first, out, count):
    of_warps = cuda.shared.array(8, int32)
    before = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    i = first + t
    value = a[i] if i < a.size else float32(0)
    votes = cuda.ballot_sync(0xFFFFFFFF, value > 0)
    if t % 32 == 0:
        of_warps[t // 32] = cuda.popc(votes)
    if t == 0:
        before[0] = count[0] if first > 0 else 0
    cuda.syncthreads()
    place = before[0] + cuda.popc(votes & cuda.lanemask_lt())
    total = before[0]
    for w in range(8):
        if w < t // 32:
            place += of_warps[w]
        total += of_warps[w]
    if value > 0:
        out[place] = value
    if t == 0:
        count[0] = total


def compact(a, out, count):
    for first in range(0, max(a.size, 1), 256):
        one_block[1, 256](a, first, out, count)
