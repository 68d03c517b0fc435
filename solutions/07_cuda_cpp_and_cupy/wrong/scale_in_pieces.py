# exercise: cpp.scale  fails: launches  says: 98 launches
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
    for first in range(0, x.size, 1024):
        piece = x[first : first + 1024]
        kernel((1,), (1024,), (piece, piece.dtype.type(factor), cp.int32(piece.size)))
