# exercise: modern.exp2  fails: requests to memory  says: wherever it is
from gpulab import cupy as cp

numbers = ", ".join(f"{2.0 ** (i / 128):.9e}f" for i in range(128))
powers = cp.RawKernel(
    r"""
__constant__ float table[128] = {NUMBERS};
extern "C" __global__ void powers(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float kept = fmaxf(x[i], -126.0f), moved = fmaf(kept, 128.0f, 12582912.0f);
    float f = fmaf(moved - 12582912.0f, -1.0f / 128, kept);
    int steps = __float_as_int(moved) - 0x4b400000;
    float p = table[steps & 127] * fmaf(f, 0.69314718f, 1.0f);
    out[i] = __int_as_float(__float_as_int(p) + (steps >> 7 << 23));
}
""".replace("NUMBERS", numbers),
    "powers",
)
