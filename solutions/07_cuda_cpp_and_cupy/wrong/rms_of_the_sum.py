# exercise: cupy.rms  fails: right  says: first wrong at 16 × 64
from gpulab import cupy as cp

root_mean_square = cp.ReductionKernel(
    "float32 a, float32 b", "float32 y", "(a - b) * (a - b)", "a + b", "y = sqrtf(a)", "0", "root_mean_square"
)


def rms(a, b, out):
    root_mean_square(a, b, axis=1, out=out)
