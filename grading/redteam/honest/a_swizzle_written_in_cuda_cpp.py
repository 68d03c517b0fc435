# how: CUDA C++ in place of layouts: places are exchanged by an XOR in the index
# exercise: layout.transpose
turning = cp.RawKernel(
    r"""
extern "C" __global__ void turning(const float4* x, float4* y, int m, int n) {
    __shared__ float4 tile[32][8];
    int high = threadIdx.x / 8, four = threadIdx.x % 8;
    tile[high][four ^ high / 4] = x[((blockIdx.y * 32 + high) * n + blockIdx.x * 32) / 4 + four];
    __syncthreads();
    float v[4];
    for (int e = 0; e < 4; e++) {
        int row = 4 * four + e;
        v[e] = reinterpret_cast<const float*>(&tile[row][high / 4 ^ row / 4])[high % 4];
    }
    y[((blockIdx.x * 32 + high) * m + blockIdx.y * 32) / 4 + four] = make_float4(v[0], v[1], v[2], v[3]);
}
""",
    "turning",
)


def transpose(x, y):
    rows, columns = x.shape
    turning((columns // 32, rows // 32), (256,), (x, y, cp.int32(rows), cp.int32(columns)))
