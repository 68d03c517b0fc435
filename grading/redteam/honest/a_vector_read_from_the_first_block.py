# how: three blocks read v from the shared memory of the first, instead of a copy to all four
# exercise: async.share
share = cp.RawKernel(
    HEAD
    + r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4, 1, 1) share(const float* a, const float* v, float* out, int n) {
    __shared__ alignas(128) float of_a[256], of_v[256];
    __shared__ unsigned long long full;
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, mine = cluster.block_rank() == 0;
    a += blockIdx.x * n;
    out += blockIdx.x * n;
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    const float* shared_v = cluster.map_shared_rank(of_v, 0);
    for (int k = 0; k < n / 256; k++) {
        if (t == 0) {
            expect(&full, 1024 + 1024 * mine);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, of_a, a + k * 256, 1024, &full);
            if (mine) ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, of_v, v + k * 256, 1024, &full);
        }
        wait(&full, k & 1);
        cluster.sync();
        out[k * 256 + t] = of_a[t] * shared_v[t];
        cluster.sync();
    }
}
""",
    "share",
)
