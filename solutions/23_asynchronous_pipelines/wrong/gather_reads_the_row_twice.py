# exercise: async.gather  fails: bytes of the busiest block  says: part once
from gpulab import cupy as cp

gather = cp.RawKernel(
    r"""
#include <cooperative_groups.h>
#include <math_constants.h>
namespace cg = cooperative_groups;

__device__ float over_block(float x, bool largest, float* parts) {   // parts: 8 floats of shared memory
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
    __shared__ float parts[2][8], largest, sum;
    auto cluster = cg::this_cluster();
    int first = cluster.block_rank() * 1024 + threadIdx.x;   // then first + 256, + 512, + 768
    x += blockIdx.x / 4 * n;
    out += blockIdx.x / 4 * n;
    float v[4], top = -CUDART_INF_F, total = 0;
    for (int j = 0; j < 4; j++) {
        int i = first + 256 * j;
        v[j] = i < n ? x[i] : -CUDART_INF_F;
        top = fmaxf(top, v[j]);
    }
    top = over_block(top, true, parts[0]);
    if (threadIdx.x == 0) largest = top;
    cluster.sync();
    for (int rank = 0; rank < 4; rank++) top = fmaxf(top, *cluster.map_shared_rank(&largest, rank));
    for (int j = 0; j < 4; j++) {
        int i = first + 256 * j;
        total += v[j] = i < n ? expf(x[i] - top) : 0;
    }
    total = over_block(total, false, parts[1]);
    if (threadIdx.x == 0) sum = total;
    cluster.sync();
    total = 0;
    for (int rank = 0; rank < 4; rank++) total += *cluster.map_shared_rank(&sum, rank);
    for (int j = 0; j < 4; j++)
        if (first + 256 * j < n) out[first + 256 * j] = v[j] / total;
    cluster.sync();
}
""",
    "gather",
)
