# how: the last thread sends; a thread reads its own place and writes the mirrored one; slots by pointers
# exercise: async.bulk
bulk = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void bulk(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 even[256], odd[256];
    __shared__ unsigned long long of_even, of_odd;
    const int t = threadIdx.x, sender = blockDim.x - 1;
    const float4* from = x + blockIdx.x * tiles * blockDim.x;
    float4* to = out + blockIdx.x * tiles * blockDim.x + sender - t;
    if (t == sender) {
        ptx::mbarrier_init(&of_odd, 1);
        ptx::mbarrier_init(&of_even, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    int sent = 0;
    auto send = [&] {
        if (t != sender || sent == tiles) return;
        float4* slot = sent & 1 ? odd : even;
        unsigned long long* full = sent & 1 ? &of_odd : &of_even;
        expect(full, 4096);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slot, from + sent++ * 256, 4096, full);
    };
    send();
    send();
    for (int k = 0; k < tiles; ++k, to += 256) {
        wait(k & 1 ? &of_odd : &of_even, k >> 1 & 1);
        float4 v = (k & 1 ? odd : even)[t];
        __syncthreads();
        send();
        *to = {v.w, v.z, v.y, v.x};
    }
}
""",
    "bulk",
)
