# exercise: cpp.copy4  fails: requests  says: naive 4,098
from gpulab import cupy as cp

copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) b[i] = a[i];
}
""",
    "copy4",
)
