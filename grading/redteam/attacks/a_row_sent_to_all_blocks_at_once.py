# how: one block copies the whole row to all four by multicasts, so that none needs what another has
# exercise: async.gather
# earns: 2
# says: busiest block
gather = cp.RawKernel(
    HEAD
    + r"""
#include <math_constants.h>

extern "C" __global__ void __cluster_dims__(4, 1, 1) gather(const float* x, float* out, int n) {
    __shared__ alignas(128) float row[4096 + 32];
    __shared__ unsigned long long full;
    __shared__ float parts[2][8];
    int t = threadIdx.x, rank = ptx::get_sreg_cluster_ctarank();
    x += blockIdx.x / 4 * n;
    out += blockIdx.x / 4 * n;
    int before = min(n, int(-(unsigned long long)x / 4 % 4)), whole = (n - before) / 4 * 4;
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        if (whole) expect(&full, 4 * whole);
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (t == 0 && rank == 0 && whole)
        ptx::cp_async_bulk(
            ptx::space_cluster, ptx::space_global, row, x + before, 4 * whole, &full, (unsigned short)15);
    if (whole) wait(&full, 0);
    auto at = [&](int i) { return i < before || i >= before + whole ? x[i] : row[i - before]; };
    float top = -CUDART_INF_F, total = 0;
    for (int i = t; i < n; i += 256) top = fmaxf(top, at(i));
    for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    if (t % 32 == 0) parts[0][t / 32] = top;
    __syncthreads();
    for (int w = 0; w < 8; w++) top = fmaxf(top, parts[0][w]);
    for (int i = t; i < n; i += 256) total += expf(at(i) - top);
    for (int d = 16; d; d /= 2) total += __shfl_xor_sync(~0u, total, d);
    if (t % 32 == 0) parts[1][t / 32] = total;
    __syncthreads();
    total = 0;
    for (int w = 0; w < 8; w++) total += parts[1][w];
    for (int i = rank * 1024 + t; i < min(n, rank * 1024 + 1024); i += 256) out[i] = expf(at(i) - top) / total;
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}
""",
    "gather",
)
