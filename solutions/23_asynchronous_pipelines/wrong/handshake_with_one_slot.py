# exercise: async.handshake  fails: phases of an mbarrier  says: naive 16
from gpulab import cupy as cp

handshake = cp.RawKernel(
    r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void handshake(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[32];
    __shared__ unsigned long long full, empty;
    int lane = threadIdx.x % 32;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 32);
        ptx::mbarrier_init(&empty, 32);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        if (threadIdx.x < 32) {
            while (!ptx::mbarrier_test_wait_parity(&empty, k & 1 ^ 1)) {}
            slot[lane] = x[k * 32 + lane];
            ptx::mbarrier_arrive(&full);
        } else {
            while (!ptx::mbarrier_test_wait_parity(&full, k & 1)) {}
            float4 v = slot[31 - lane];
            ptx::mbarrier_arrive(&empty);
            out[k * 32 + lane] = make_float4(v.w, v.z, v.y, v.x);
        }
    }
}
""",
    "handshake",
)
