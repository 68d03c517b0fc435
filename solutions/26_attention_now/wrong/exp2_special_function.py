# exercise: modern.exp2  fails: special functions  says: naive
from gpulab import cupy as cp

powers = cp.RawKernel(
    r"""
extern "C" __global__ void powers(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) asm("ex2.approx.f32 %0, %1;" : "=f"(out[i]) : "f"(x[i]));
}
""",
    "powers",
)
