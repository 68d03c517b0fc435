# how: turns 4 × 4 floats in each thread's registers; shared memory only holds them for the same thread
# exercise: layout.transpose
# earns: 2.75
# says: loads from shared memory
decoy = cp.RawKernel(
    r"""
extern "C" __global__ void decoy(const float4* x, float4* y, int m, int n) {
    __shared__ float4 tile[4][64];
    int t = threadIdx.x, row = blockIdx.x * 32 + t / 8 * 4, col = blockIdx.y * 32 + t % 8 * 4;
    float v[4][4];
    for (int i = 0; i < 4; i++) *reinterpret_cast<float4*>(v[i]) = x[((row + i) * n + col) / 4];
    for (int i = 0; i < 4; i++) tile[i][t] = make_float4(v[0][i], v[1][i], v[2][i], v[3][i]);
    __syncthreads();
    for (int i = 0; i < 4; i++) y[((col + i) * m + row) / 4] = tile[i][t];
}
""",
    "decoy",
)


def transpose(x, y):
    m, n = x.shape
    decoy((m // 32, n // 32), (64,), (x, y, cp.int32(m), cp.int32(n)))
