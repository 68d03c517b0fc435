# how: loads one word at a time as if it were constant memory, which no budget counts
# exercise: cpp.copy4
# earns: 0
# says: with an instruction for constants
copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int step = gridDim.x * blockDim.x;
    float4* b4 = reinterpret_cast<float4*>(b);
    for (int i = first; i < n / 4; i += step) {
        float4 v;
        asm volatile("ld.const.f32 %0, [%1];" : "=f"(v.x) : "l"(a + 4 * i));
        asm volatile("ld.const.f32 %0, [%1];" : "=f"(v.y) : "l"(a + 4 * i + 1));
        asm volatile("ld.const.f32 %0, [%1];" : "=f"(v.z) : "l"(a + 4 * i + 2));
        asm volatile("ld.const.f32 %0, [%1];" : "=f"(v.w) : "l"(a + 4 * i + 3));
        b4[i] = v;
    }
    for (int i = n / 4 * 4 + first; i < n; i += step) b[i] = a[i];
}
""",
    "copy4",
)
