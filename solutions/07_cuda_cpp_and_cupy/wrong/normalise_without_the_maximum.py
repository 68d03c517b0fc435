# exercise: cupy.normalise  fails: right  says: should be 0
from gpulab import cupy as cp

fold = cp.ElementwiseKernel(
    "float32 mean, float32 var, float32 gamma, float32 beta",
    "float32 scale, float32 shift",
    "scale = gamma * rsqrtf(var + 1e-5f); shift = beta - mean * scale",
    "fold",
)
apply = cp.ElementwiseKernel("T x, T scale, T shift", "T out", "out = x * scale + shift", "apply")


def normalise(x, mean, var, gamma, beta, out):
    scale, shift = fold(mean, var, gamma, beta)
    apply(x, scale, shift, out)
