# exercise: cupy.normalise  fails: right  says: reads `var` on the host
from gpulab import cupy as cp


def normalise(x, mean, var, gamma, beta, out):
    scale = gamma / cp.sqrt(var + cp.float32(1e-5))
    out[...] = cp.maximum(x * scale + (beta - mean * scale), 0)
