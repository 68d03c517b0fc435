# how: keeps the parity of each slot in a variable that it turns over
# exercise: async.bulk
bulk = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void bulk(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[2][256];
    __shared__ unsigned long long full[2];
    int t = threadIdx.x, parity[2] = {0, 0};
    x += blockIdx.x * tiles * 256;
    out += blockIdx.x * tiles * 256 + t;
    if (t == 255) {
        for (int s = 0; s < 2; s++) ptx::mbarrier_init(&full[s], 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    int sent = 0;
    for (int k = 0; k < tiles; k++) {
        while (t == 255 && sent < tiles && sent < k + 2) {
            expect(&full[sent & 1], 4096);
            ptx::cp_async_bulk(
                ptx::space_cluster, ptx::space_global, slot[sent & 1], x + sent * 256, 4096, &full[sent & 1]);
            sent++;
        }
        __syncwarp();
        wait(&full[k & 1], parity[k & 1]);
        parity[k & 1] ^= 1;
        float4 v = slot[k & 1][255 - t];
        if (k + 1 < tiles) __syncthreads();
        out[k * 256] = make_float4(v.w, v.z, v.y, v.x);
    }
}
""",
    "bulk",
)
