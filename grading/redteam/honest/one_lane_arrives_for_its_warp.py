# how: initialises the mbarriers for one arrival, and lets one lane arrive for its warp
# exercise: async.handshake
handshake = cp.RawKernel(
    r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
typedef unsigned long long barrier;

__device__ void wait(barrier* at, int parity) {
    while (!ptx::mbarrier_test_wait_parity(at, parity)) {}
}
__device__ void arrive(barrier* at) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(at);
}

extern "C" __global__ void handshake(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[2][32];
    __shared__ barrier full[2], empty[2];
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 32)
        for (int s = 0; s < 2; s++) ptx::mbarrier_init(&full[s], 1), ptx::mbarrier_init(&empty[s], 1);
    __syncthreads();
    int first = blockIdx.x * tiles * 32 + lane;
    if (threadIdx.x < 32) {
        for (int k = 0; k < tiles; k++) {
            if (k >= 2) wait(&empty[k % 2], k / 2 - 1 & 1);
            slot[k % 2][lane] = x[first + 32 * k];
            arrive(&full[k % 2]);
        }
    } else {
        for (int k = 0; k < tiles; k++) {
            wait(&full[k % 2], k / 2 & 1);
            float4 v = slot[k % 2][31 - lane];
            arrive(&empty[k % 2]);
            out[first + 32 * k] = make_float4(v.w, v.z, v.y, v.x);
        }
    }
}
""",
    "handshake",
)
