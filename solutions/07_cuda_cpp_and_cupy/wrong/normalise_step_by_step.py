# exercise: cupy.normalise  fails: launches  says: 6 launches
from gpulab import cupy as cp

subtract = cp.ElementwiseKernel("T x, T y", "T z", "z = x - y", "subtract")
multiply = cp.ElementwiseKernel("T x, T y", "T z", "z = x * y", "multiply")
add = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
inverse_root = cp.ElementwiseKernel("T v", "T r", "r = rsqrtf(v + 1e-5f)", "inverse_root")
relu = cp.ElementwiseKernel("T x", "T z", "z = fmaxf(x, 0.0f)", "relu")


def normalise(x, mean, var, gamma, beta, out):
    relu(add(multiply(multiply(subtract(x, mean), inverse_root(var)), gamma), beta), out)
