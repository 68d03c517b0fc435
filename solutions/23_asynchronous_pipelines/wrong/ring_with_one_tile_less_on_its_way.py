# exercise: async.ring  fails: bytes in flight  says: naive 0
from gpulab import cupy as cp

ring = cp.RawKernel(
    SUM
    + r"""
extern "C" __global__ void ring(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[4][128];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 128;
    out += blockIdx.x * tiles * 128;
    for (int k = 0; k < 2; k++) {
        if (k < tiles) __pipeline_memcpy_async(&slot[k][t], &x[k * 128 + t], 16);
        __pipeline_commit();
    }
    for (int k = 0; k < tiles; k++) {
        __pipeline_wait_prior(1);
        __syncthreads();
        int next = k + 2;
        if (next < tiles) __pipeline_memcpy_async(&slot[next % 4][t], &x[next * 128 + t], 16);
        __pipeline_commit();
        out[k * 128 + t] = sum(slot[k % 4][t], slot[k % 4][(t + 1) % 128]);
    }
}
""",
    "ring",
)
