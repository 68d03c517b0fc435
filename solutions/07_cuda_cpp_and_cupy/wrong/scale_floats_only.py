# exercise: cpp.scale  fails: right  says: points to float, which is float32
from gpulab import cupy as cp

kernel = cp.RawKernel(
    r"""
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
""",
    "scale",
)


def scale(x, factor):
    if x.size:
        kernel((-(-x.size // 256),), (256,), (x, cp.float32(factor), cp.int32(x.size)))
