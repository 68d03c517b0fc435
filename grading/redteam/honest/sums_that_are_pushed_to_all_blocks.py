# how: each block writes its maximum and its sum into the shared memory of all others
# exercise: async.gather
gather = cp.RawKernel(
    r"""
#include <cooperative_groups.h>
#include <math_constants.h>
namespace cg = cooperative_groups;

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
    __shared__ float parts[2][8], of_all[2][4];
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), t = threadIdx.x, first = rank * 1024 + t;
    x += blockIdx.x / 4 * n;
    out += blockIdx.x / 4 * n;
    float v[4], top = -CUDART_INF_F, total = 0;
    for (int j = 0; j < 4; j++) {
        v[j] = first + 256 * j < n ? x[first + 256 * j] : -CUDART_INF_F;
        top = fmaxf(top, v[j]);
    }
    top = over_block(top, true, parts[0]);
    cluster.sync();
    if (t < 4) cluster.map_shared_rank(of_all[0], t)[rank] = top;
    cluster.sync();
    for (int r = 0; r < 4; r++) top = fmaxf(top, of_all[0][r]);
    for (int j = 0; j < 4; j++) total += v[j] = expf(v[j] - top);
    total = over_block(total, false, parts[1]);
    if (t < 4) cluster.map_shared_rank(of_all[1], t)[rank] = total;
    cluster.sync();
    total = of_all[1][0] + of_all[1][1] + of_all[1][2] + of_all[1][3];
    for (int j = 0; j < 4; j++)
        if (first + 256 * j < n) out[first + 256 * j] = v[j] / total;
}
""",
    "gather",
)
