# how: copies every tile to nobody, and reads its numbers by atomics, which are no loads
# exercise: async.bulk
# earns: 1.5
# says: loads by threads
bulk = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void bulk(float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[2][256];
    __shared__ unsigned long long full[2];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 256;
    out += blockIdx.x * tiles * 256;
    auto send = [&](int k) {
        expect(&full[k % 2], sizeof slot[0]);
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
        float* from = reinterpret_cast<float*>(&x[k * 256 + 255 - t]);
        float v[4];
        for (int j = 0; j < 4; j++) v[j] = atomicAdd(&from[j], 0.0f);
        __syncthreads();
        if (t == 0 && k + 2 < tiles) send(k + 2);
        out[k * 256 + t] = make_float4(v[3], v[2], v[1], v[0]);
    }
}
""",
    "bulk",
)
