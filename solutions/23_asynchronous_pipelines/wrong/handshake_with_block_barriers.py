# exercise: async.handshake  fails: block barriers  says: naive 132
from gpulab import cupy as cp

handshake = cp.RawKernel(
    r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void handshake(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[2][32];
    __shared__ unsigned long long full[2], empty[2];
    int lane = threadIdx.x % 32;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    if (threadIdx.x < 2) {
        ptx::mbarrier_init(&full[threadIdx.x], 32);
        ptx::mbarrier_init(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        int s = k % 2, parity = k / 2 & 1;
        if (threadIdx.x < 32) {
            slot[s][lane] = x[k * 32 + lane];
        }
        __syncthreads();
        if (threadIdx.x >= 32) {
            float4 v = slot[s][31 - lane];
            out[k * 32 + lane] = make_float4(v.w, v.z, v.y, v.x);
        }
        __syncthreads();
    }
}
""",
    "handshake",
)
