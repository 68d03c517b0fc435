# exercise: async.ring  fails: bytes  says: is a tile copied twice
from gpulab import cupy as cp

ring = cp.RawKernel(
    SUM
    + r"""
extern "C" __global__ void ring(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[4][128];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 128;
    out += blockIdx.x * tiles * 128;
    for (int k = 0; k < 3; k++) {
        if (k < tiles) __pipeline_memcpy_async(&slot[k][t], &x[k * 128 + t], 16);
        __pipeline_commit();
    }
    for (int k = 0; k < tiles; k++) {
        __pipeline_wait_prior(2);
        float4 v = slot[k % 4][t];
        int next = k + 3;
        if (next < tiles) __pipeline_memcpy_async(&slot[next % 4][t], &x[next * 128 + t], 16);
        __pipeline_commit();
        out[k * 128 + t] = sum(v, x[k * 128 + (t + 1) % 128]);
    }
}
""",
    "ring",
)
