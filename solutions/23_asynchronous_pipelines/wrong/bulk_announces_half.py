# exercise: async.bulk  fails: right  says: announced
from gpulab import cupy as cp

HEAD = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };   // section 7 needs it

__device__ void expect(unsigned long long* full, unsigned bytes) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, bytes);
}
__device__ void wait(unsigned long long* bar, int parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {}
}
"""

bulk = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void bulk(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[2][256];
    __shared__ unsigned long long full[2];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 256;
    out += blockIdx.x * tiles * 256;
    auto send = [&](int k) {
        expect(&full[k % 2], sizeof slot[0] / 2);
        ptx::cp_async_bulk(
            ptx::space_cluster, ptx::space_global, slot[k % 2], x + k * 256, sizeof slot[0], &full[k % 2]);
    };
    if (t == 0) {
        ptx::mbarrier_init(&full[0], 1);
        ptx::mbarrier_init(&full[1], 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        for (int k = 0; k < 2 && k < tiles; k++) send(k);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        wait(&full[k % 2], k / 2 & 1);
        float4 v = slot[k % 2][255 - t];
        __syncthreads();
        if (t == 0 && k + 2 < tiles) send(k + 2);
        out[k * 256 + t] = make_float4(v.w, v.z, v.y, v.x);
    }
}
""",
    "bulk",
)
