# how: bits in the place of a subtraction, and a grid-stride loop over both axes
# exercise: cpp.invert
invert = cp.RawKernel(
    """
extern "C" __global__ void invert(
    const unsigned char* image, unsigned char* out, int rows, int cols, int pitch) {
    for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y)
        for (int col = blockIdx.x * blockDim.x + threadIdx.x; col < cols; col += gridDim.x * blockDim.x)
            out[row * pitch + col] = image[row * pitch + col] ^ 0xFF;
}
""",
    "invert",
)
