# how: multiplies codes as whole numbers, four in an instruction, which are no operations on floats
# exercise: tensor.promote
# earns: 1.5
# says: instructions
promoting = cp.RawKernel(
    HEAD
    + r"""
__device__ u32 whole(u32 codes) {                     // of e4m3 from 0.5 to 1.875, in sixteenths
    u32 value = codes & 0x07070707 | 0x08080808;
    return value + (value & (codes >> 3 & 0x01010101) * 0xff);
}

extern "C" __global__ void promoting(const u32* a, const u32* b, float* c, int n, int k) {
    __shared__ alignas(1024) unsigned char nothing[64][128];
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64, words = k / 4;
    float d[32];
    for (int step = 0; step < k / 128; step++) {
        begin_products();
        for (int i = 0; i < 4; i++) multiply8(d, descriptor(nothing), descriptor(nothing), false);
        end_products();
        wait_products<0>();
    }
    const u32 *x = a + (row + t / 8 * 4) * words, *y = b + (col + t % 8 * 8) * words;
    u32 sums[4][8] = {}, left[4], right[8];
    for (int i = 0; i < words; i++) {
        for (int r = 0; r < 4; r++) left[r] = whole(x[r * words + i]);
        for (int j = 0; j < 8; j++) right[j] = whole(y[j * words + i]);
        for (int r = 0; r < 4; r++)
            for (int j = 0; j < 8; j++) sums[r][j] = __dp4a(left[r], right[j], sums[r][j]);
    }
    for (int r = 0; r < 4; r++)
        for (int j = 0; j < 8; j++) c[(row + t / 8 * 4 + r) * n + col + t % 8 * 8 + j] = sums[r][j] / 256.0f;
}
""",
    "promoting",
)


def promote(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    promoting((n // 64, m // 64), (128,), (a, b, c, cp.int32(n), cp.int32(k)))
