# exercise: parallel.compact  fails: loaded bytes  says: how many elements are kept before it
import numpy as np
from numba import float32, int32

from gpulab import cuda


@cuda.jit
def scan(a, out):
    of_warps = cuda.shared.array(8, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    lane, warp = t % 32, t // 32
    value = a[i] if i < a.size else int32(0)
    for distance in (1, 2, 4, 8, 16):
        left = cuda.shfl_up_sync(0xFFFFFFFF, value, distance)
        if lane >= distance:
            value += left
    if lane == 31:
        of_warps[warp] = value
    cuda.syncthreads()
    for w in range(warp):
        value += of_warps[w]
    if i < a.size:
        out[i] = value


@cuda.jit
def count_kept(a, kept):
    i = cuda.grid(1)
    number = cuda.syncthreads_count(1 if i < a.size and a[i] > 0 else 0)
    if cuda.threadIdx.x == 0:
        kept[cuda.blockIdx.x] = number


@cuda.jit
def move_kept(a, ends, out, count):
    of_warps = cuda.shared.array(8, int32)
    t, i, block = cuda.threadIdx.x, cuda.grid(1), cuda.blockIdx.x
    value = a[i] if i < a.size else float32(0)
    votes = cuda.ballot_sync(0xFFFFFFFF, value > 0)
    if t % 32 == 0:
        of_warps[t // 32] = cuda.popc(votes)
    cuda.syncthreads()
    place = cuda.popc(votes & cuda.lanemask_lt())
    for w in range(t // 32):
        place += of_warps[w]
    if block > 0:
        place += ends[block - 1]
    if value > 0:
        out[place] = value
    if t == 0 and block == cuda.gridDim.x - 1:
        count[0] = ends[block]


def compact(a, out, count):
    blocks = max(1, -(-a.size // 256))
    kept, ends = cuda.device_array(blocks, np.int32), cuda.device_array(blocks, np.int32)
    count_kept[blocks, 256](a, kept)
    scan[1, 256](kept, ends)
    move_kept[blocks, 256](a, ends, out, count)
