# feature: CuPy: RawModule, elementwise, reduction and fused kernels
import cupy as cp

module = cp.RawModule(
    code="template <typename T> __global__ void add(T *a, T v) { a[threadIdx.x] += v; }",
    name_expressions=["add<float>"],
)
a = cp.zeros(32, cp.float32)
module.get_function("add<float>")((1,), (32,), (a, cp.float32(2)))
squares = cp.ElementwiseKernel("T x", "T y", "y = x * x", "squares")
length = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length")
double_plus = cp.fuse(lambda x, y: x * 2 + y)
assert (squares(a) == 4).all() and abs(float(length(a)) - 128**0.5) < 1e-4
assert (double_plus(a, a) == 6).all()
