# exercise: cpp.copy4  fails: right  says: OutOfBounds
from gpulab import cupy as cp

copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    const float4* a4 = reinterpret_cast<const float4*>(a);
    float4* b4 = reinterpret_cast<float4*>(b);
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n + 3) / 4; i += step) b4[i] = a4[i];
}
""",
    "copy4",
)
