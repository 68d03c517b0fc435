# exercise: gemm.tiles  fails: loaded bytes  says: 393,216 B
from gpulab import cupy as cp

tiles = cp.RawKernel(
    r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void tiles(const __half* a, const __half* b, float* c, int m, int k, int n) {
    __shared__ __align__(32) __half a_part[4][16][16], b_part[4][16][16];
    int warp = threadIdx.y, lane = threadIdx.x;
    for (int part = warp; part < 16; part += 4) {
        int row = 64 * blockIdx.y + 16 * (part / 4), col = 64 * blockIdx.x + 16 * (part % 4);
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
        wmma::fill_fragment(sum, 0.0f);
        for (int first = 0; first < k; first += 16) {
            for (int e = lane; e < 256; e += 32) {
                int i = first + e % 16, j = first + e / 16;
                a_part[warp][e / 16][e % 16] = i < k ? a[(row + e / 16) * k + i] : __half(0);
                b_part[warp][e / 16][e % 16] = j < k ? b[j * n + col + e % 16] : __half(0);
            }
            __syncwarp();
            wmma::load_matrix_sync(x, &a_part[warp][0][0], 16);
            wmma::load_matrix_sync(y, &b_part[warp][0][0], 16);
            wmma::mma_sync(sum, x, y, sum);
            __syncwarp();
        }
        wmma::store_matrix_sync(c + row * n + col, sum, n, wmma::mem_row_major);
    }
}
""",
    "tiles",
)
