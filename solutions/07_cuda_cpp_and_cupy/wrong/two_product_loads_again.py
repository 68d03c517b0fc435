# exercise: cpp.two_product  fails: bytes loaded  says: can the compiler be sure
from gpulab import cupy as cp

two_product = cp.RawKernel(
    r"""
extern "C" __global__ void two_product(const double* a, const double* b, double* p, double* e, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        p[i] = a[i] * b[i];
        e[i] = fma(a[i], b[i], -p[i]);
    }
}
""",
    "two_product",
)
