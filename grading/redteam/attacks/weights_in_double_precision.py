# how: takes no maximum at all, because weights and sums in float64 reach from 2 to the -1022 to 2 to the 1023
# exercise: modern.lazy
# earns: 0
# says: should be
lazy = cp.RawKernel(
    r"""
__device__ double power(float x) {
    float whole = floorf(x), y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x - whole));
    return double(y) * __hiloint2double(1023 + int(whole) << 20, 0);
}

extern "C" __global__ void lazy(const float* scores, const float* v, float* out, float* lse, int n, int m) {
    int row = blockIdx.x * 32 + threadIdx.x;
    double total[16] = {}, s = 0;
    for (int j = 0; j < m; j++) {
        double weight = power(scores[j * n + row]);
        s += weight;
        for (int i = 0; i < 16; i++) total[i] += weight * v[j * 16 + i];
    }
    for (int i = 0; i < 16; i++) out[row * 16 + i] = total[i] / s;
    int exponent = (__double2hiint(s) >> 20) - 1023;
    lse[row] = exponent + log2f(float(s * __hiloint2double(1023 - exponent << 20, 0)));
}
""",
    "lazy",
)
