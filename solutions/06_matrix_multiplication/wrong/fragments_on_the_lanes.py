# exercise: gemm.fragments  fails: loaded bytes  says: 1,310,720 B
from gpulab import cupy as cp

fragments = cp.RawKernel(
    r"""
#include <cuda_fp16.h>

extern "C" __global__ void fragments(const __half* a, const __half* b, float* c, int m, int k, int n) {
    int lane = threadIdx.x;
    for (int e = lane; e < 256; e += 32) {
        int row = 16 * blockIdx.y + e / 16, col = 16 * blockIdx.x + e % 16;
        float sum = 0;
        for (int i = 0; i < k; i++) sum += __half2float(a[row * k + i]) * __half2float(b[i * n + col]);
        c[row * n + col] = sum;
    }
}
""",
    "fragments",
)
