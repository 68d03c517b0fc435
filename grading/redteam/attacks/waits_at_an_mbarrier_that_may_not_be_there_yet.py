# how: no barrier behind the initialisation of an mbarrier, so that a warp may look at it before
# exercise: tensor.tile
# earns: 0
# says: not initialised
code = multiplying.code.replace("    __syncthreads();\n    for (int step", "    for (int step")
assert code != multiplying.code
multiplying = cp.RawKernel(code, "multiplying")


def product(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
    multiplying((n // 64, m // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
