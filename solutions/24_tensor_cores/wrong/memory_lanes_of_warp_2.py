# exercise: tensor.memory  fails: right  says: reaches lanes 0 to 31
import gpulab
from gpulab import cupy as cp

asking = cp.RawKernel(
    BLACKWELL
    + r"""
extern "C" __global__ void asking(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) __half of_a[128][64], of_b[64][64];
    __shared__ u64 full, read, over;
    __shared__ u32 place;
    int t = threadIdx.x, row = blockIdx.y * 128, col = blockIdx.x * 64;
    if (t == 0) initialise(&full, 1), initialise(&read, 1), initialise(&over, 1);
    if (t < 32) {
        ptx::tcgen05_alloc(ptx::cta_group_1, &place, 64);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    ptx::tcgen05_fence_after_thread_sync();
    u32 sums = place, bits[64];
    if (t == 0) {
        for (int step = 0; step < k / 64; step++) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 64, row, &full);
            copy(of_b, &b, step * 64, col, &full);
            wait(&full, step & 1);
            for (int i = 0; i < 4; i++)
                multiply<1>(sums, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, ONE, step + i > 0);
            ptx::tcgen05_commit(ptx::cta_group_1, &read);
            wait(&read, step & 1);
        }
        ptx::tcgen05_commit(ptx::cta_group_1, &over);
    }
    wait(&over, 0);
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_ld_32x32b(bits, sums + (64 << 16));
    ptx::tcgen05_wait_ld();
    store_row(bits, c + (row + t) * n + col);
    __syncthreads();
    if (t < 32) ptx::tcgen05_dealloc(ptx::cta_group_1, sums, 64);
}
""",
    "asking",
)


def by_one_thread(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    maps = gpulab.tensor_map(a, (128, 64), swizzle=128), gpulab.tensor_map(b, (64, 64), swizzle=128)
    asking((n // 64, m // 128), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
