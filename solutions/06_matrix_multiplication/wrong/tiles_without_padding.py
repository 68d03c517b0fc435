# exercise: gemm.tiles  fails: bank conflicts  says: 5,376 wavefronts
from gpulab import cupy as cp

tiles = cp.RawKernel(
    r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void tiles(const __half* a, const __half* b, float* c, int m, int k, int n) {
    __shared__ __align__(32) __half a_tile[64][16], b_tile[16][64];
    int t = 32 * threadIdx.y + threadIdx.x;
    int top = 64 * blockIdx.y, left = 64 * blockIdx.x;
    int down = 32 * (threadIdx.y / 2), across = 32 * (threadIdx.y % 2);
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) wmma::fill_fragment(sums[i][j], 0.0f);
    for (int first = 0; first < k; first += 16) {
        for (int e = t; e < 1024; e += 128) {
            int row = e / 16, i = first + e % 16;
            a_tile[row][e % 16] = i < k ? a[(top + row) * k + i] : __half(0);
            int col = e % 64, j = first + e / 64;
            b_tile[e / 64][col] = j < k ? b[j * n + left + col] : __half(0);
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y[2];
        for (int i = 0; i < 2; i++) {
            wmma::load_matrix_sync(x[i], &a_tile[down + 16 * i][0], 16);
            wmma::load_matrix_sync(y[i], &b_tile[0][across + 16 * i], 64);
        }
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) wmma::mma_sync(sums[i][j], x[i], y[j], sums[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            float* out = c + (top + down + 16 * i) * n + left + across + 16 * j;
            wmma::store_matrix_sync(out, sums[i][j], n, wmma::mem_row_major);
        }
}
""",
    "tiles",
)
