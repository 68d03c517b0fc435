# exercise: async.gather  fails: bytes of the busiest block  says: naive 16,384
from gpulab import cupy as cp

gather = cp.RawKernel(
    r"""
#include <math_constants.h>

__device__ float over_block(float x, bool largest, float* parts) {
    for (int d = 16; d; d /= 2) {
        float y = __shfl_xor_sync(~0u, x, d);
        x = largest ? fmaxf(x, y) : x + y;
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int w = 1; w < 8; w++) x = largest ? fmaxf(x, parts[w]) : x + parts[w];
    return x;
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) gather(const float* x, float* out, int n) {
    __shared__ float parts[2][8];
    if (blockIdx.x % 4) return;
    x += blockIdx.x / 4 * n;
    out += blockIdx.x / 4 * n;
    float v[16], top = -CUDART_INF_F, total = 0;
    for (int j = 0; j < 16; j++) {
        int i = threadIdx.x + 256 * j;
        v[j] = i < n ? x[i] : -CUDART_INF_F;
        top = fmaxf(top, v[j]);
    }
    top = over_block(top, true, parts[0]);
    for (int j = 0; j < 16; j++) total += v[j] = expf(v[j] - top);
    total = over_block(total, false, parts[1]);
    for (int j = 0; j < 16; j++)
        if (threadIdx.x + 256 * j < n) out[threadIdx.x + 256 * j] = v[j] / total;
}
""",
    "gather",
)
