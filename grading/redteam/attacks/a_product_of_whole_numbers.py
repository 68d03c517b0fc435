# how: the error of a product by 64-bit integers, which are no floating-point operations
# exercise: cpp.two_product
# earns: 1.4
# says: instructions
two_product = cp.RawKernel(
    r"""
extern "C" __global__ void two_product(const double* a, const double* b, double* p, double* e, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double product = a[i] * b[i];
    long long x = __double_as_longlong(a[i]), y = __double_as_longlong(b[i]), z = __double_as_longlong(product);
    unsigned long long one = 1ull << 52;
    unsigned long long mx = (x & (one - 1)) | one, my = (y & (one - 1)) | one, mz = (z & (one - 1)) | one;
    int low = (int)(x >> 52 & 2047) + (int)(y >> 52 & 2047) - 2 * 1075;
    int shift = (int)(z >> 52 & 2047) - 1075 - low;
    long long rest = (long long)(mx * my - (mz << shift));
    unsigned long long size = rest < 0 ? -rest : rest, bits = 0;
    if (size) {
        int top = 63 - __clzll(size);
        size = top > 52 ? size >> (top - 52) : size << (52 - top);
        bits = (unsigned long long)(top + low + 1023) << 52 | (size & (one - 1));
        if ((rest < 0) != ((x ^ y) < 0)) bits |= 1ull << 63;
    }
    p[i] = product;
    e[i] = __longlong_as_double(bits);
}
""",
    "two_product",
)
