# exercise: cupy.rms  fails: launches  says: 4 launches
from gpulab import cupy as cp

difference = cp.ElementwiseKernel("T a, T b", "T d", "d = a - b", "difference")
product = cp.ElementwiseKernel("T a, T b", "T p", "p = a * b", "product")
total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
root = cp.ElementwiseKernel("T s, int32 n", "T r", "r = sqrtf(s / n)", "root")


def rms(a, b, out):
    d = difference(a, b)
    root(total(product(d, d), axis=1), a.shape[1], out)
