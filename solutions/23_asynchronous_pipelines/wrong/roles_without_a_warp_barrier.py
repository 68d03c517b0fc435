# exercise: async.roles  fails: right  says: if one lane arrives for its warp, __syncwarp() comes before
from gpulab import cupy as cp

roles = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void roles(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[4][128];
    __shared__ unsigned long long full[4], empty[4];
    int t = threadIdx.x, warp = t / 32;
    x += blockIdx.x * tiles * 128;
    out += blockIdx.x * tiles * 128;
    if (t < 4) {
        ptx::mbarrier_init(&full[t], 1);
        ptx::mbarrier_init(&empty[t], 4);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (warp == 4) {
        if (t % 32 == 0)
            for (int k = 0; k < tiles; k++) {
                int s = k % 4;
                wait(&empty[s], (k / 4 & 1) ^ 1);
                expect(&full[s], sizeof slot[0]);
                ptx::cp_async_bulk(
                    ptx::space_cluster, ptx::space_global, slot[s], x + k * 128, sizeof slot[0], &full[s]);
            }
    } else {
        for (int k = 0; k < tiles; k++) {
            int s = k % 4;
            wait(&full[s], k / 4 & 1);
            float4 v = slot[s][127 - t];
            if (t % 32 == 0) ptx::mbarrier_arrive(&empty[s]);
            out[k * 128 + t] = make_float4(v.w, v.z, v.y, v.x);
        }
    }
}
""",
    "roles",
)
