# how: brings both tiles by six loads a step, as for the tensor cores, and multiplies them number by number
# exercise: gemm.lanes
# earns: 2.6
# says: instructions
lanes = cp.RawKernel(
    r"""
#include <cuda_fp16.h>

extern "C" __global__ void lanes(const __half* x, const __half* w, float* y, int m, int k, int n) {
    __shared__ unsigned left[16][8], right[8][8];
    int t = threadIdx.x, row = 16 * blockIdx.y, col = 8 * blockIdx.x;
    float d[4] = {};
    for (int i = 0; i < k; i += 16) {
        for (int j = 0; j < 4; j++)
            left[t / 8 + 4 * j][t % 8] = ((const unsigned*)x)[((row + t / 8 + 4 * j) * k + i) / 2 + t % 8];
        for (int j = 0; j < 2; j++)
            right[t / 8 + 4 * j][t % 8] = ((const unsigned*)w)[((col + t / 8 + 4 * j) * k + i) / 2 + t % 8];
        __syncwarp();
        for (int p = 0; p < 8; p++) {
            float2 b = __half22float2(reinterpret_cast<__half2*>(right[t % 8])[p]);
            for (int j = 0; j < 4; j++) {
                float2 a = __half22float2(reinterpret_cast<__half2*>(left[t / 8 + 4 * j])[p]);
                d[j] += a.x * b.x + a.y * b.y;
            }
        }
        __syncwarp();
    }
    for (int j = 0; j < 4; j++) y[(row + t / 8 + 4 * j) * n + col + t % 8] = d[j];
}
""",
    "lanes",
)
