# exercise: modern.exp2  fails: right  says: should be
from gpulab import cupy as cp

powers = cp.RawKernel(
    r"""
extern "C" __global__ void powers(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float kept = x[i], moved = kept + 12582912.0f, f = kept - (moved - 12582912.0f);
    float p = fmaf(0.05508868f, f, 0.24260405f);
    p = fmaf(p, f, 0.69327624f);
    p = fmaf(p, f, 0.99992894f);
    out[i] = __int_as_float(__float_as_int(p) + (__float_as_int(moved) << 23));
}
""",
    "powers",
)
