# exercise: gemm.steady  fails: right  says: first wrong
from gpulab import cupy as cp

steady = cp.RawKernel(
    r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void steady(const __half* a, const __half* b, float* c, int m, int k, int n) {
    __shared__ __align__(32) __half out[16 * 16];
    int row = 16 * blockIdx.y, col = 16 * blockIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> sum;
    wmma::fill_fragment(sum, __half(0));
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + i * n + col, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32) c[(row + e / 16) * n + col + e % 16] = out[e];
}
""",
    "steady",
)
