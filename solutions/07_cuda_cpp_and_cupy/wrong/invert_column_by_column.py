# exercise: cpp.invert  fails: load sectors  says: naive 4,096
from gpulab import cupy as cp

invert = cp.RawKernel(
    r"""
extern "C" __global__ void invert(const unsigned char* image, unsigned char* out, int rows, int cols, int pitch) {
    int t = threadIdx.y * blockDim.x + threadIdx.x;  // a block column by column
    int col = blockIdx.x * blockDim.x + t / blockDim.y;
    int row = blockIdx.y * blockDim.y + t % blockDim.y;
    if (row < rows && col < cols)
        out[row * pitch + col] = 255 - image[row * pitch + col];
}
""",
    "invert",
)
