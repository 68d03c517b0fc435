# how: hands tiles over by flags that are released and acquired, so that no mbarrier has a phase
# exercise: async.handshake
# earns: 2
# says: phases of an mbarrier
handshake = cp.RawKernel(
    r"""
#include <cuda/atomic>

extern "C" __global__ void handshake(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[2][32];
    __shared__ int written, done;
    int lane = threadIdx.x % 32;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    if (threadIdx.x == 0) written = done = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block> there(written), over(done);
    for (int k = 0; k < tiles; k++) {
        int s = k % 2;
        if (threadIdx.x < 32) {
            while (over.load(cuda::memory_order_acquire) < 32 * (k - 1)) {}
            slot[s][lane] = x[k * 32 + lane];
            there.fetch_add(1, cuda::memory_order_release);
        } else {
            while (there.load(cuda::memory_order_acquire) < 32 * (k + 1)) {}
            float4 v = slot[s][31 - lane];
            over.fetch_add(1, cuda::memory_order_release);
            out[k * 32 + lane] = make_float4(v.w, v.z, v.y, v.x);
        }
    }
}
""",
    "handshake",
)
