# how: keeps a table of powers of two in an array of each thread, which is in local memory
# exercise: modern.exp2
# earns: 2.5
# says: requests to memory
POWERS = ", ".join(f"{2 ** (j / 32):.9f}f" for j in range(-16, 17))
powers = cp.RawKernel(
    r"""
extern "C" __global__ void powers(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    volatile float table[33] = {"""
    + POWERS
    + r"""};
    float kept = fmaxf(x[i], -126.0f), moved = kept + 393216.0f, f = kept - (moved - 393216.0f);
    int bits = __float_as_int(moved) - __float_as_int(393216.0f), whole = bits + 16 >> 5;
    float p = table[bits - 32 * whole + 16];
    float q = fmaf(0.2402265f, f, 0.6931472f) * f;
    out[i] = __int_as_float(__float_as_int(fmaf(p, q, p)) + (whole << 23));
}
""",
    "powers",
)
