# how: begins with sums of zero and lets every product add to them
# exercise: tensor.tile
adding = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void adding(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) __half of_a[64][64], of_b[64][64];
    __shared__ u64 full;
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64, parity = 0;
    float d[32] = {};
    if (t == 0) initialise(&full, 1);
    __syncthreads();
    for (int at = 0; at < k; at += 64, parity ^= 1) {
        if (t == 0) {
            expect(&full, 16384);
            copy(of_b, &b, at, col, &full);
            copy(of_a, &a, at, row, &full);
        }
        wait(&full, parity);
        u64 left = descriptor(of_a), right = descriptor(of_b);
        begin_products();
        for (int i = 0; i < 4; i++, left += 2, right += 2) multiply(d, left, right, true);
        end_products();
        wait_products<0>();
        __syncthreads();
    }
    store(d, c + row * n + col, n);
}
""",
    "adding",
)


def product(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
    adding((n // 64, m // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
