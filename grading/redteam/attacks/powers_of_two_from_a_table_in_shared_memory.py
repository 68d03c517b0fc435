# how: makes a table of powers of two in shared memory and looks them up, so that a line does for a polynomial
# exercise: modern.exp2
# earns: 2.5
# says: requests to memory
powers = cp.RawKernel(
    r"""
extern "C" __global__ void powers(const float* x, float* out, int n) {
    __shared__ float table[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    for (int j = t; j < 256; j += 128) {
        float f = (j - 128) * 0.00390625f;
        table[j] = fmaf(fmaf(fmaf(fmaf(0.009676036f, f, 0.055826318f), f, 0.24022653f), f, 0.69314718f), f, 1.0f);
    }
    __syncthreads();
    if (i >= n) return;
    float kept = fmaxf(x[i], -126.0f), moved = kept + 49152.0f, f = kept - (moved - 49152.0f);
    int bits = __float_as_int(moved) - __float_as_int(49152.0f), whole = bits + 128 >> 8;
    float p = table[bits + 128 & 255];
    out[i] = __int_as_float(__float_as_int(fmaf(p * 0.6931472f, f, p)) + (whole << 23));
}
""",
    "powers",
)
