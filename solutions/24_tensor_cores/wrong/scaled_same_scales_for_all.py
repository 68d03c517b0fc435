# exercise: tensor.scaled  fails: right  says: first wrong
import gpulab
from gpulab import cupy as cp

scaling = cp.RawKernel(
    SCALES
    + r"""
extern "C" __global__ void scaling(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const unsigned char* scales_a,
    const unsigned char* scales_b, float* c, int n, int k) {
    __shared__ alignas(1024) unsigned char of_a[128][128], of_b[128][128];
    __shared__ alignas(128) unsigned char scale_a[4][512], scale_b[4][512];
    __shared__ u64 full, read, over;
    __shared__ u32 place;
    int t = threadIdx.x, row = blockIdx.y * 128, col = blockIdx.x * 128, steps = k / 256;
    if (t == 0) initialise(&full, 1), initialise(&read, 1), initialise(&over, 1);
    if (t < 32) {
        ptx::tcgen05_alloc(ptx::cta_group_1, &place, 256);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    ptx::tcgen05_fence_after_thread_sync();
    u32 sums = place, columns = place + 128, bits[64];
    if (t == 0) {
        for (int step = 0; step < steps; step++) {
            expect(&full, sizeof of_a + sizeof of_b + sizeof scale_a + sizeof scale_b);
            copy(of_a, &a, step * 128, row, &full);
            copy(of_b, &b, step * 128, col, &full);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, scale_a,
                               scales_a + (blockIdx.y * steps + step) * 2048, 2048, &full);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, scale_b,
                               scales_b + (blockIdx.x * steps + step) * 2048, 2048, &full);
            wait(&full, step & 1);
            for (int i = 0; i < 4; i++) {
                scales_to(columns + 4 * i, scale_a[0]);
                scales_to(columns + 16 + 4 * i, scale_b[i]);
                multiply4(sums, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, columns + 4 * i,
                          columns + 16 + 4 * i, step + i > 0);
            }
            ptx::tcgen05_commit(ptx::cta_group_1, &read);
            wait(&read, step & 1);
        }
        ptx::tcgen05_commit(ptx::cta_group_1, &over);
    }
    wait(&over, 0);
    ptx::tcgen05_fence_after_thread_sync();
    for (int half = 0; half < 2; half++) {
        ptx::tcgen05_ld_32x32b(bits, sums + 64 * half + (t / 32 * 32 << 16));
        ptx::tcgen05_wait_ld();
        store_row(bits, c + (row + t) * n + col + 64 * half);
    }
    __syncthreads();
    if (t < 32) ptx::tcgen05_dealloc(ptx::cta_group_1, sums, 256);
}
""",
    "scaling",
)


def scaled(a, b, scales_a, scales_b, c):
    m, n, k = a.shape[0], b.shape[0], 2 * a.shape[1]
    maps = [gpulab.tensor_map(x, (128, 128), swizzle=128) for x in (a, b)]
    scaling((n // 128, m // 128), (128,), (*maps, scales_a, scales_b, c, cp.int32(n), cp.int32(k)))
