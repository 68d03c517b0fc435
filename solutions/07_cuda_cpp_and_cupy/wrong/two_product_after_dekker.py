# exercise: cpp.two_product  fails: instructions  says: single instruction
from gpulab import cupy as cp

two_product = cp.RawKernel(
    r"""
extern "C" __global__ void two_product(const double* a, const double* b, double* p, double* e, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double x = a[i], y = b[i], product = x * y;
        double cut = 134217729.0 * x, high = cut - (cut - x), low = x - high;
        double other = 134217729.0 * y, top = other - (other - y), rest = y - top;
        p[i] = product;
        e[i] = low * rest - (((product - high * top) - low * top) - high * rest);
    }
}
""",
    "two_product",
)
