# exercise: cpp.invert  fails: load sectors  says: 4,096 sectors
from gpulab import cupy as cp

invert = cp.RawKernel(
    r"""
extern "C" __global__ void invert(const unsigned char* image, unsigned char* out, int rows, int cols, int pitch) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    for (int row = threadIdx.y; row < rows; row += blockDim.y)  // whatever blockIdx.y says
        if (col < cols)
            out[row * pitch + col] = 255 - image[row * pitch + col];
}
""",
    "invert",
)
