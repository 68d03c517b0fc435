# how: stores to local memory by addresses of global memory, which no budget counts
# exercise: cpp.copy4
# earns: 0
# says: copy4
copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float value;
        value = a[i];
        asm volatile("st.local.f32 [%0], %1;" :: "l"(b + i), "f"(value) : "memory");
    }
}
""",
    "copy4",
)
