# how: rounds by a conversion to a whole number and builds the power of two from its exponent
# exercise: modern.exp2
powers = cp.RawKernel(
    r"""
extern "C" __global__ void powers(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float kept = fmaxf(x[i], -126.0f);
        int whole = __float2int_rn(kept);
        float f = kept - whole;
        float p = fmaf(fmaf(fmaf(0.05508868f, f, 0.24260405f), f, 0.69327624f), f, 0.99992894f);
        out[i] = __int_as_float(whole * (1 << 23) + __float_as_int(p));
    }
}
""",
    "powers",
)
