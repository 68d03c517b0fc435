# exercise: cupy.normalise  fails: bytes  says: 1,179,648 B
from gpulab import cupy as cp

at_once = cp.ElementwiseKernel(
    "T x, T mean, T var, T gamma, T beta",
    "T out",
    "out = fmaxf((x - mean) * rsqrtf(var + 1e-5f) * gamma + beta, 0.0f)",
    "at_once",
)


def normalise(x, mean, var, gamma, beta, out):
    at_once(x, mean, var, gamma, beta, out)
