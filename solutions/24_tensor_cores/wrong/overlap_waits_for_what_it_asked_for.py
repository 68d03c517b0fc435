# exercise: tensor.overlap  fails: products in flight  says: naive 0
import gpulab
from gpulab import cupy as cp

overlapping = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void overlapping(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    extern __shared__ __align__(1024) __half slots[];
    __shared__ u64 full[3], empty[3];
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    if (t < 3) {
        initialise(&full[t], 1);
        initialise(&empty[t], 4);
    }
    __syncthreads();
    if (t >= 128) {
        if (t == 128)
            for (int step = 0; step < k / 64; step++) {
                int s = step % 3;
                wait(&empty[s], (step / 3 & 1) ^ 1);
                expect(&full[s], 16384);
                copy(slots + s * 8192, &a, step * 64, row, &full[s]);
                copy(slots + s * 8192 + 4096, &b, step * 64, col, &full[s]);
            }
        return;
    }
    float d[32];
    for (int step = 0; step < k / 64; step++) {
        int s = step % 3;
        wait(&full[s], step / 3 & 1);
        u64 left = descriptor(slots + s * 8192), right = descriptor(slots + s * 8192 + 4096);
        begin_products();
        for (int i = 0; i < 4; i++) multiply(d, left + 2 * i, right + 2 * i, step + i > 0);
        end_products();
        wait_products<0>();
        if (t % 32 == 0) ptx::mbarrier_arrive(&empty[s]);
    }
    wait_products<0>();
    store(d, c + row * n + col, n);
}
""",
    "overlapping",
)


def overlap(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
    grid = (n // 64, m // 64)
    overlapping(grid, (160,), (*maps, c, cp.int32(n), cp.int32(k)), shared_mem=3 * 16384)
