# exercise: async.parity  fails: warps that load and write  says: one role
from gpulab import cupy as cp

parity = cp.RawKernel(
    r"""
extern "C" __global__ void running(const float4* x, float4* out, int tiles) {
    int lane = threadIdx.x;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    if (lane >= 32) return;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < tiles; k++) {
        float4 v = x[k * 32 + lane];
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
        out[k * 32 + lane] = sum;
    }
}
""",
    "running",
)
