# how: one warp does all, and its loads are atomic additions of 0, so that it seems to have one role
# exercise: async.parity
# earns: 1
# says: warps that load and write
parity = cp.RawKernel(
    r"""
extern "C" __global__ void running(float* x, float* out, int tiles) {
    if (threadIdx.x >= 32) return;
    x += blockIdx.x * tiles * 128 + 4 * threadIdx.x;
    out += blockIdx.x * tiles * 128 + 4 * threadIdx.x;
    float sum[4] = {};
    for (int k = 0; k < tiles; k++)
        for (int j = 0; j < 4; j++) out[k * 128 + j] = sum[j] += atomicAdd(&x[k * 128 + j], 0.0f);
}
""",
    "running",
)
