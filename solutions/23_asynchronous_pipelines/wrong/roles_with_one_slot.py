# exercise: async.roles  fails: phases of an mbarrier  says: naive 17
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
                wait(&empty[0], (k & 1) ^ 1);
                expect(&full[0], sizeof slot[0]);
                ptx::cp_async_bulk(
                    ptx::space_cluster, ptx::space_global, slot[0], x + k * 128, sizeof slot[0], &full[0]);
            }
    } else {
        for (int k = 0; k < tiles; k++) {
            wait(&full[0], k & 1);
            float4 v = slot[0][127 - t];
            __syncwarp();
            if (t % 32 == 0) ptx::mbarrier_arrive(&empty[0]);
            out[k * 128 + t] = make_float4(v.w, v.z, v.y, v.x);
        }
    }
}
""",
    "roles",
)
