# exercise: tensor.tile  fails: right  says: overwrites an operand in shared memory too early
import gpulab
from gpulab import cupy as cp

multiplying = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void multiplying(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) __half of_a[64][64], of_b[64][64];
    __shared__ u64 full;
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    float d[32];
    if (t == 0) initialise(&full, 1);
    __syncthreads();
    for (int step = 0; step < k / 64; step++) {
        if (t == 0) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 64, row, &full);
            copy(of_b, &b, step * 64, col, &full);
        }
        wait(&full, step & 1);
        begin_products();
        for (int i = 0; i < 4; i++)
            multiply(d, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, step + i > 0);
        end_products();
        __syncthreads();
    }
    store(d, c + row * n + col, n);
}
""",
    "multiplying",
)


def product(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
    multiplying((n // 64, m // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
