# exercise: tensor.memory  fails: instructions  says: which line multiplies number by number
from gpulab import cupy as cp

plain = cp.RawKernel(
    r"""
#include <cuda_fp16.h>

extern "C" __global__ void plain(const __half* a, const __half* b, float* c, int n, int k) {
    int row = blockIdx.y * 128 + threadIdx.x;
    for (int col = blockIdx.x * 64; col < blockIdx.x * 64 + 64; col++) {
        float sum = 0;
        for (int i = 0; i < k; i++) sum = fmaf(__half2float(a[row * k + i]), __half2float(b[col * k + i]), sum);
        c[row * n + col] = sum;
    }
}
""",
    "plain",
)


def by_one_thread(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    plain((n // 64, m // 128), (128,), (a, b, c, cp.int32(n), cp.int32(k)))
