# exercise: cpp.copy4  fails: right  says: first wrong at 1,023
from gpulab import cupy as cp

copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    const float4* a4 = reinterpret_cast<const float4*>(a);
    float4* b4 = reinterpret_cast<float4*>(b);
    int step = gridDim.x * blockDim.x;
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first; i < n / 4; i += step) b4[i] = a4[i];
    if (first == 0 && n < 4)  // but what is left of a longer array?
        for (int i = 0; i < n; i++) b[i] = a[i];
}
""",
    "copy4",
)
