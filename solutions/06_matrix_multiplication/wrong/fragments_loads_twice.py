# exercise: gemm.fragments  fails: loaded bytes, instructions  says: 122,880 B
from gpulab import cupy as cp

fragments = cp.RawKernel(
    r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void fragments(const __half* a, const __half* b, float* c, int m, int k, int n) {
    int row = 16 * blockIdx.y, col = 16 * blockIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + i * n + col, n);
        wmma::mma_sync(sum, left, right, sum);
        asm volatile("" ::: "memory");
        wmma::load_matrix_sync(left, a + row * k + i, k);
        for (int e = 0; e < left.num_elements; e++) sum.x[0] += 0 * __half2float(left.x[e]);
    }
    wmma::store_matrix_sync(c + row * n + col, sum, n, wmma::mem_row_major);
}
""",
    "fragments",
)
