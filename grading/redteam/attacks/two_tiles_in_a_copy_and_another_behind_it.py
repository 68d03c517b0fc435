# how: brings two tiles at a time when it needs them; copies of something else are in flight behind them
# exercise: async.bulk
# earns: 2
# says: bytes
bulk = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void bulk(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[2][256], nowhere[512];
    __shared__ unsigned long long full, idle;
    int t = threadIdx.x, phase = 0;
    x += blockIdx.x * tiles * 256;
    out += blockIdx.x * tiles * 256;
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&idle, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k += 2, phase++) {
        int both = k + 1 < tiles ? 2 : 1;
        if (t == 0) {
            expect(&full, both * sizeof slot[0]);
            ptx::cp_async_bulk(
                ptx::space_cluster, ptx::space_global, slot, x + k * 256, both * sizeof slot[0], &full);
            if (both == 2) {
                expect(&idle, sizeof nowhere);
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, nowhere, x, sizeof nowhere, &idle);
            }
        }
        wait(&full, phase & 1);
        float4 v = slot[0][255 - t], w = slot[both - 1][255 - t];
        if (both == 2) wait(&idle, phase & 1);
        __syncthreads();
        out[k * 256 + t] = make_float4(v.w, v.z, v.y, v.x);
        if (both == 2) out[k * 256 + 256 + t] = make_float4(w.w, w.z, w.y, w.x);
    }
}
""",
    "bulk",
)
