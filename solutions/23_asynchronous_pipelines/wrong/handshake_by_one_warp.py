# exercise: async.handshake  fails: warps that load and write  says: one role
from gpulab import cupy as cp

handshake = cp.RawKernel(
    r"""
extern "C" __global__ void handshake(const float4* x, float4* out, int tiles) {
    int lane = threadIdx.x;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    if (lane >= 32) return;
    for (int k = 0; k < tiles; k++) {
        float4 v = x[k * 32 + 31 - lane];
        out[k * 32 + lane] = make_float4(v.w, v.z, v.y, v.x);
    }
}
""",
    "handshake",
)
