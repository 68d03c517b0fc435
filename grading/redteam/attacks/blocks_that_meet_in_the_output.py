# how: the blocks of a cluster exchange their maxima and sums through the output, in global memory
# exercise: async.gather
# earns: 2
# says: bytes
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
    __shared__ float parts[2][8];
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), first = rank * 1024 + threadIdx.x;
    x += blockIdx.x / 4 * n;
    out += blockIdx.x / 4 * n;
    int* key = reinterpret_cast<int*>(out);
    float v[4], top = -CUDART_INF_F, total = 0;
    for (int j = 0; j < 4; j++) {
        int i = first + 256 * j;
        v[j] = i < n ? x[i] : -CUDART_INF_F;
        top = fmaxf(top, v[j]);
    }
    top = over_block(top, true, parts[0]);
    if (first == 0) atomicExch(key, 0);
    cluster.sync();
    if (threadIdx.x == 0) atomicMax(key, int(1 << 24) + int(floorf(fmaxf(top, -100.0f))));
    cluster.sync();
    top = atomicAdd(key, 0) - (1 << 24);
    cluster.sync();
    for (int j = 0; j < 4; j++) total += v[j] = expf(v[j] - top);
    total = over_block(total, false, parts[1]);
    if (first == 0) atomicExch(out, 0.0f);
    cluster.sync();
    if (threadIdx.x == 0) atomicAdd(out, total);
    cluster.sync();
    total = atomicAdd(out, 0.0f);
    cluster.sync();
    for (int j = 0; j < 4; j++)
        if (first + 256 * j < n) out[first + 256 * j] = v[j] / total;
}
""",
    "gather",
)
