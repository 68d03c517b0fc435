# exercise: cpp.invert  fails: right  says: first wrong at 9 × 33
from gpulab import cupy as cp

invert = cp.RawKernel(
    r"""
extern "C" __global__ void invert(const unsigned char* image, unsigned char* out, int rows, int cols, int pitch) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < pitch)
        out[row * pitch + col] = 255 - image[row * pitch + col];
}
""",
    "invert",
)
