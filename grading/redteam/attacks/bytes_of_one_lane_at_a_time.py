# how: walks down the columns of its block, a lane after the other: every request is one sector
# exercise: cpp.invert
# earns: 1.6
# says: load sectors … naive
invert = cp.RawKernel(
    r"""
extern "C" __global__ void invert(const unsigned char* image, unsigned char* out, int rows, int cols, int pitch) {
    int t = threadIdx.y * 32 + threadIdx.x;
    int row = blockIdx.y * 8 + t % 8, col = blockIdx.x * 32 + t / 8;
    for (int lane = 0; lane < 32; lane++)
        if (t % 32 == lane && row < rows && col < cols) out[row * pitch + col] = 255 - image[row * pitch + col];
}
""",
    "invert",
)
