# how: sends a tile when it needs it, and keeps a copy from shared memory to shared memory on its way behind it
# exercise: async.bulk
# earns: 2.25
# says: bytes in flight
bulk = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void bulk(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[256], nothing[256], nowhere[256];
    __shared__ unsigned long long full, idle;
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 256;
    out += blockIdx.x * tiles * 256;
    nothing[t] = make_float4(0, 0, 0, 0);
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&idle, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        if (t == 0) {
            expect(&full, sizeof slot);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slot, x + k * 256, sizeof slot, &full);
            expect(&idle, sizeof nothing);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, nowhere, nothing, sizeof nothing, &idle);
        }
        wait(&full, k & 1);
        float4 v = slot[255 - t];
        wait(&idle, k & 1);
        __syncthreads();
        out[k * 256 + t] = make_float4(v.w, v.z, v.y, v.x);
    }
}
""",
    "bulk",
)
