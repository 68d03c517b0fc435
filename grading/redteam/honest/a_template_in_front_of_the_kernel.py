# how: a template and a helper of its own in front of the kernel
# exercise: cpp.two_product
two_product = cp.RawKernel(
    r"""
template <typename T> __device__ __forceinline__ void split(T x, T y, T& high, T& low) {
    high = x * y;
    low = __fma_rn(x, y, -high);
}
extern "C" __global__ void two_product(
    const double* __restrict__ a, const double* __restrict__ b, double* __restrict__ p, double* __restrict__ e, int n) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first; i < n; i += gridDim.x * blockDim.x) {
        double high, low;
        split(a[i], b[i], high, low);
        p[i] = high;
        e[i] = low;
    }
}
""",
    "two_product",
    options=("--std=c++14",),
)
