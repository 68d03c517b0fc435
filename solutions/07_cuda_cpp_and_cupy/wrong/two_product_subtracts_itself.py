# exercise: cpp.two_product  fails: right  says: first wrong at 1,000
from gpulab import cupy as cp

two_product = cp.RawKernel(
    r"""
extern "C" __global__ void two_product(const double* a, const double* b, double* p, double* e, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double x = a[i], y = b[i], product = x * y;
        p[i] = product;
        e[i] = x * y - product;
    }
}
""",
    "two_product",
)
