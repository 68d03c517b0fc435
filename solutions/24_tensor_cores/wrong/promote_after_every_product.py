# exercise: tensor.promote  fails: waits for products  says: naive
import gpulab
from gpulab import cupy as cp

promoting = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void promoting(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) unsigned char of_a[64][128], of_b[64][128];
    __shared__ u64 full;
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    float d[32], total[32] = {};
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
            for (int j = 0; j < 32; j++) total[j] += d[j];
        }
        __syncthreads();
    }
    store(total, c + row * n + col, n);
}
""",
    "promoting",
)


def promote(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    maps = [gpulab.tensor_map(x, (64, 128), swizzle=128) for x in (a, b)]
    promoting((n // 64, m // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
