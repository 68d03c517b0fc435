# how: copies by atomic exchange and atomic addition, which are neither loads nor stores
# exercise: cpp.copy4
# earns: 1.2
# says: requests
copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(float* a, float* b, int n) {
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        atomicExch(b + i, atomicAdd(a + i, -0.0f));
}
""",
    "copy4",
)
