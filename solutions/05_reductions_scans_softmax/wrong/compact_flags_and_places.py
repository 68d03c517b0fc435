# exercise: parallel.compact  fails: loaded bytes  says: loaded bytes
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
def mark(a, flags):
    i = cuda.grid(1)
    if i < a.size:
        flags[i] = 1 if a[i] > 0 else 0


@cuda.jit
def last_places(places, ends):
    block = cuda.threadIdx.x
    if block < ends.size and places.size > 0:
        ends[block] = places[min(256 * block + 255, places.size - 1)]
    elif block < ends.size:
        ends[block] = 0


@cuda.jit
def move(a, places, ends, out, count):
    before = cuda.shared.array(1, int32)
    i, block = cuda.grid(1), cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        before[0] = ends[block - 1] if block > 0 else 0
        if block == cuda.gridDim.x - 1:
            count[0] = ends[block]
    cuda.syncthreads()
    if i < a.size and a[i] > 0:
        out[before[0] + places[i] - 1] = a[i]


def compact(a, out, count):
    blocks = max(1, -(-a.size // 256))
    flags, places = cuda.device_array(a.size, np.int32), cuda.device_array(a.size, np.int32)
    kept, ends = cuda.device_array(blocks, np.int32), cuda.device_array(blocks, np.int32)
    mark[blocks, 256](a, flags)
    scan[blocks, 256](flags, places)
    last_places[1, 256](places, kept)
    scan[1, 256](kept, ends)
    move[blocks, 256](a, places, ends, out, count)
