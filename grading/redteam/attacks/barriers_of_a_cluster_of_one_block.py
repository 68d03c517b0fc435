# how: all five warps meet for every tile at the barrier of the cluster, which is their block
# exercise: async.roles
# earns: 1.5
# says: block barriers
roles = cp.RawKernel(
    HEAD
    + r"""
__device__ void meet() {
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}

extern "C" __global__ void roles(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[4][128];
    __shared__ unsigned long long full[4];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 128;
    out += blockIdx.x * tiles * 128;
    if (t < 4) {
        ptx::mbarrier_init(&full[t], 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        int s = k % 4;
        if (t == 128) {
            expect(&full[s], sizeof slot[0]);
            ptx::cp_async_bulk(
                ptx::space_cluster, ptx::space_global, slot[s], x + k * 128, sizeof slot[0], &full[s]);
        }
        if (t < 128) {
            wait(&full[s], k / 4 & 1);
            float4 v = slot[s][127 - t];
            out[k * 128 + t] = make_float4(v.w, v.z, v.y, v.x);
        }
        __syncwarp();
        meet();
    }
}
""",
    "roles",
)
