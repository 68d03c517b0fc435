# how: keeps products of nothing in flight and copies of nothing on their way; threads multiply by themselves
# exercise: tensor.overlap
# earns: 1.5
# says: instructions
overlapping = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void overlapping(const __half* a, const __half* b, float* c, int n, int k) {
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
                expect(&full[s], 32);
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slots + s * 8192, a, 16, &full[s]);
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slots + s * 8192 + 8, b, 16, &full[s]);
            }
        return;
    }
    float d[32];
    for (int step = 0; step < k / 64; step++) {
        int s = step % 3;
        wait(&full[s], step / 3 & 1);
        u64 nothing = descriptor(slots + 4096);
        begin_products();
        for (int i = 0; i < 4; i++) multiply(d, nothing, nothing, false);
        end_products();
        wait_products<1>();
        if (t % 32 == 0) ptx::mbarrier_arrive(&empty[s]);
    }
    wait_products<0>();
    for (int at = t; at < 64 * 64; at += 128) {
        const __half *x = a + (row + at / 64) * k, *y = b + (col + at % 64) * k;
        float sum = 0;
        for (int i = 0; i < k; i++) sum = fmaf(__half2float(x[i]), __half2float(y[i]), sum);
        c[(row + at / 64) * n + col + at % 64] = sum;
    }
}
""",
    "overlapping",
)


def overlap(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    grid = (n // 64, m // 64)
    overlapping(grid, (160,), (a, b, c, cp.int32(n), cp.int32(k)), shared_mem=3 * 16384)
