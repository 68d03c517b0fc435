# how: adds up after every product, in whole numbers, which are no operations on floats
# exercise: tensor.promote
# earns: 1.5
# says: instructions
wholly = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void wholly(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) unsigned char of_a[64][128], of_b[64][128];
    __shared__ u64 full;
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    float d[32], total[32];
    int sums[32] = {};                                     // multiples of 2^-16
    if (t == 0) initialise(&full, 1);
    __syncthreads();
    for (int step = 0; step < k / 128; step++) {
        if (t == 0) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 128, row, &full);
            copy(of_b, &b, step * 128, col, &full);
        }
        wait(&full, step & 1);
        for (int i = 0; i < 4; i++) {
            begin_products();
            multiply8(d, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, false);
            end_products();
            wait_products<0>();
            for (int j = 0; j < 32; j++) {
                int bits = __float_as_int(d[j]), left = (bits >> 23) - 134;
                int mantissa = bits & 0x7fffff | 0x800000;
                sums[j] += left > 0 ? mantissa << left : mantissa >> -left;
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 32; j++) total[j] = __int_as_float(__float_as_int(float(sums[j])) - (16 << 23));
    store(total, c + row * n + col, n);
}
""",
    "wholly",
)


def promote(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    maps = [gpulab.tensor_map(x, (64, 128), swizzle=128) for x in (a, b)]
    wholly((n // 64, m // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
