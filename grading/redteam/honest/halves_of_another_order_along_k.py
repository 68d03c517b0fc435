# how: 64 bits for each lane: the order of k within a step may be any, as long as both operands have the same
# exercise: gemm.lanes
lanes = cp.RawKernel(
    r"""
#include <cuda_fp16.h>

__device__ void mma(float4& d, uint2 above, uint2 below, uint2 b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d.x), "+f"(d.y), "+f"(d.z), "+f"(d.w)
        : "r"(above.x), "r"(below.x), "r"(above.y), "r"(below.y), "r"(b.x), "r"(b.y));
}

extern "C" __global__ void lanes(const __half* x, const __half* w, float* y, int m, int k, int n) {
    int g = threadIdx.x >> 2, t = threadIdx.x & 3, row = 16 * blockIdx.y + g, col = 8 * blockIdx.x;
    float4 d = {};
    for (int i = 0; i < k; i += 16) {
        auto at = [=](const __half* from, int line) {
            return *reinterpret_cast<const uint2*>(from + line * k + i + 4 * t);
        };
        mma(d, at(x, row), at(x, row + 8), at(w, col + g));
    }
    float2* out = reinterpret_cast<float2*>(y + row * n + col) + t;
    out[0] = {d.x, d.y};
    out[4 * n] = {d.z, d.w};
}
""",
    "lanes",
)
