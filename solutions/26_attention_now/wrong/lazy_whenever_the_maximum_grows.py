# exercise: modern.lazy  fails: exponentials  says: naive 18,432
from gpulab import cupy as cp

lazy = cp.RawKernel(
    r"""
#include <math_constants.h>

__device__ float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

extern "C" __global__ void lazy(const float* scores, const float* v, float* out, float* lse, int n, int m) {
    int row = blockIdx.x * 32 + threadIdx.x;
    float total[16] = {}, s = 0, largest = -CUDART_INF_F;
    for (int first = 0; first < m; first += 8) {
        float score[8], top = -CUDART_INF_F;
        for (int j = 0; j < 8; j++) {
            score[j] = scores[(first + j) * n + row];
            top = fmaxf(top, score[j]);
        }
        if (__any_sync(0xffffffff, top > largest)) {
            float larger = fmaxf(largest, top), old = power(largest - larger);
            largest = larger;
            s *= old;
            for (int i = 0; i < 16; i++) total[i] *= old;
        }
        for (int j = 0; j < 8; j++) {
            float weight = power(score[j] - largest);
            s += weight;
            for (int i = 0; i < 16; i++) total[i] += weight * v[(first + j) * 16 + i];
        }
    }
    for (int i = 0; i < 16; i++) out[row * 16 + i] = total[i] / s;
    lse[row] = largest + log2f(s);
}
""",
    "lazy",
)
