# exercise: modern.exp2  fails: right  says: relative error
from gpulab import cupy as cp

powers = cp.RawKernel(
    r"""
extern "C" __global__ void powers(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float kept = fmaxf(x[i], -126.0f), moved = kept + 12582912.0f, f = kept - (moved - 12582912.0f);
    float p = fmaf(0.05550411f, f, 0.24022651f);
    p = fmaf(p, f, 0.69314718f);
    p = fmaf(p, f, 1.0f);
    out[i] = __int_as_float(__float_as_int(p) + (__float_as_int(moved) << 23));
}
""",
    "powers",
)
