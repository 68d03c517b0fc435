# how: each thread attends for half a query by itself and reads where keys and values are; no tile is brought
# exercise: modern.roles
# earns: 3
# says: loads from global memory
plain = cp.RawKernel(
    r"""
#include <cuda_fp16.h>

extern "C" __global__ void plain(const __half* q, const __half* k, const __half* vt, float* out, int m) {
    int row = blockIdx.x * 128 + threadIdx.x;
    if (threadIdx.x >= 128) return;
    float largest = -1e30f, s = 0, total[64] = {};
    for (int j = 0; j < m; j++) {
        float score = 0;
        for (int d = 0; d < 64; d++)
            score = fmaf(__half2float(q[row * 64 + d]), __half2float(k[j * 64 + d]), score);
        float larger = fmaxf(largest, score), old = exp2f(largest - larger), weight = exp2f(score - larger);
        s = s * old + weight;
        for (int d = 0; d < 64; d++) total[d] = fmaf(weight, __half2float(vt[d * m + j]), total[d] * old);
        largest = larger;
    }
    for (int d = 0; d < 64; d++) out[row * 64 + d] = total[d] / s;
}
""",
    "plain",
)


def attend(q, k, vt, out):
    plain((q.shape[0] // 128,), (288,), (q, k, vt, out, cp.int32(k.shape[0])))
