# how: loads 16 bytes as two doubles
# exercise: cpp.copy4
copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    unsigned step = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned i = t; i < (unsigned)n / 4; i += step)
        ((double2*)b)[i] = ((const double2*)a)[i];
    unsigned rest = n & 3;
    if (t < rest) b[n - rest + t] = a[n - rest + t];
}
""",
    "copy4",
)
