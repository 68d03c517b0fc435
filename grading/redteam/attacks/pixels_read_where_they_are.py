# how: reads each pixel where it is, a column of the image at a time; no tile is ever brought
# exercise: async.tile
# earns: 2
# says: loads by threads
transposing = cp.RawKernel(
    r"""
extern "C" __global__ void transposing(const float4* a, float4* out, int rows, int cols) {
    int row = blockIdx.y * 32 + threadIdx.x % 32, col = blockIdx.x * 8 + threadIdx.x / 32;
    if (row < rows && col < cols) out[col * rows + row] = a[row * cols + col];
}
""",
    "transposing",
)


def transpose(a, out):
    rows, cols, _ = a.shape
    transposing((-(-cols // 8), -(-rows // 32)), (256,), (a, out, cp.int32(rows), cp.int32(cols)))
