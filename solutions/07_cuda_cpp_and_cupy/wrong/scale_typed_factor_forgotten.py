# exercise: cpp.scale  fails: right  says: is a float, but got
from gpulab import cupy as cp

module = cp.RawModule(
    code=r"""
template <typename T>
__global__ void scale(T* x, T factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
""",
    name_expressions=["scale<float>", "scale<double>", "scale<int>"],
)
NAMES = {"float32": "float", "float64": "double", "int32": "int"}


def scale(x, factor):
    kernel = module.get_function(f"scale<{NAMES[x.dtype.name]}>")
    if x.size:
        kernel((-(-x.size // 256),), (256,), (x, factor, cp.int32(x.size)))
