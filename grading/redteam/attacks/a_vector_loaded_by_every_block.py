# how: copies a alone, and lets the threads of every block bring v by copies that are no bulk copies
# exercise: async.share
# earns: 2
# says: loads by threads
share = cp.RawKernel(
    HEAD
    + r"""
#include <cuda_pipeline.h>

extern "C" __global__ void __cluster_dims__(4, 1, 1) share(const float* a, const float* v, float* out, int n) {
    __shared__ alignas(128) float of_a[256], of_v[256];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    a += blockIdx.x * n;
    out += blockIdx.x * n;
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    for (int k = 0; k < n / 256; k++) {
        if (t == 0) {
            expect(&full, sizeof of_a);
            ptx::cp_async_bulk(
                ptx::space_cluster, ptx::space_global, of_a, a + k * 256, sizeof of_a, &full);
        }
        __pipeline_memcpy_async(&of_v[t], &v[k * 256 + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        wait(&full, k & 1);
        out[k * 256 + t] = of_a[t] * of_v[t];
        __syncthreads();
    }
}
""",
    "share",
)
