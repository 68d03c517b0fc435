# how: keeps copies of no bytes on their way, and brings every tile by plain loads when it is needed
# exercise: async.ring
# earns: 2.5
# says: bytes in flight
ring = cp.RawKernel(
    SUM
    + r"""
extern "C" __global__ void ring(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[4][128];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 128;
    out += blockIdx.x * tiles * 128;
    for (int k = 0; k < 3; k++) {
        __pipeline_memcpy_async(&slot[2 + k % 2][t], x, 16, 16);
        __pipeline_commit();
    }
    for (int k = 0; k < tiles; k++) {
        slot[k % 2][t] = x[k * 128 + t];
        __pipeline_wait_prior(2);
        __syncthreads();
        __pipeline_memcpy_async(&slot[2 + k % 2][t], x, 16, 16);
        __pipeline_commit();
        out[k * 128 + t] = sum(slot[k % 2][t], slot[k % 2][(t + 1) % 128]);
    }
}
""",
    "ring",
)
