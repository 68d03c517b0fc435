# exercise: async.roles  fails: warps that load and write  says: one role
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
    auto send = [&](int k) {
        expect(&full[k % 4], sizeof slot[0]);
        ptx::cp_async_bulk(
            ptx::space_cluster, ptx::space_global, slot[k % 4], x + k * 128, sizeof slot[0], &full[k % 4]);
    };
    if (warp == 4) return;
    if (t == 0)
        for (int k = 0; k < 4 && k < tiles; k++) send(k);
    for (int k = 0; k < tiles; k++) {
        int s = k % 4;
        wait(&full[s], k / 4 & 1);
        float4 v = slot[s][127 - t];
        __syncwarp();
        if (t % 32 == 0) ptx::mbarrier_arrive(&empty[s]);
        out[k * 128 + t] = make_float4(v.w, v.z, v.y, v.x);
        if (t == 0 && k + 4 < tiles) {
            wait(&empty[s], k / 4 & 1);
            send(k + 4);
        }
        __syncwarp();
    }
}
""",
    "roles",
)
