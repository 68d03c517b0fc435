# exercise: tensor.pair  fails: right  says: the second of a pair
import gpulab
from gpulab import cupy as cp

pairing = cp.RawKernel(
    BLACKWELL
    + r"""
__device__ void meet() {
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) pairing(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) __half of_a[128][64], of_b[32][64];
    __shared__ u64 full, read;
    __shared__ u32 place;
    int t = threadIdx.x, rank = ptx::get_sreg_cluster_ctarank(), row = blockIdx.x * 128, col = blockIdx.y * 64;
    if (t == 0) initialise(&full, 1), initialise(&read, 1);
    if (t < 32) {
        ptx::tcgen05_alloc(ptx::cta_group_2, &place, 64);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_2);
    }
    ptx::tcgen05_fence_before_thread_sync();
    meet();
    ptx::tcgen05_fence_after_thread_sync();
    u32 sums = place, bits[64];
    for (int step = 0; step < k / 64; step++) {
        if (t == 0) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 64, row, &full);
            copy(of_b, &b, step * 64, col + 32 * rank, &full);
            wait(&full, step & 1);
        }
        meet();
        if (t == 0) {
            for (int i = 0; i < 4; i++)
                multiply<2>(sums, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, PAIR, step + i > 0);
            ptx::tcgen05_commit_multicast(ptx::cta_group_2, &read, (unsigned short)3);
        }
        wait(&read, step & 1);
    }
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_ld_32x32b(bits, sums + (t / 32 * 32 << 16));
    ptx::tcgen05_wait_ld();
    store_row(bits, c + (row + t) * n + col);
    meet();
    if (t < 32) ptx::tcgen05_dealloc(ptx::cta_group_2, sums, 64);
}
""",
    "pairing",
)


def pair(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    maps = gpulab.tensor_map(a, (128, 64), swizzle=128), gpulab.tensor_map(b, (32, 64), swizzle=128)
    pairing((m // 128, n // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
