# how: thread 96 is the one that copies and multiplies, by a lambda, and looks again and again without waiting
# exercise: tensor.memory
asking = cp.RawKernel(
    BLACKWELL
    + r"""
__device__ __noinline__ void look(u64* bar, int parity) {
    for (bool over = false; !over;) over = ptx::mbarrier_test_wait_parity(bar, parity);
}

extern "C" __global__ void asking(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) __half of_a[128][64], of_b[64][64];
    __shared__ u64 full, read, over;
    __shared__ u32 place;
    const int thread = threadIdx.x, warp = thread >> 5;
    if (thread == 96) initialise(&full, 1), initialise(&read, 1), initialise(&over, 1);
    if (warp == 1) {
        ptx::tcgen05_alloc(ptx::cta_group_1, &place, 64);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    ptx::tcgen05_fence_after_thread_sync();
    u32 sums = place, bits[64];
    auto step = [&](int first, int parity) {
        expect(&full, (128 + 64) * 64 * sizeof(__half));
        copy(of_b, &b, first, blockIdx.x * 64, &full);
        copy(of_a, &a, first, blockIdx.y * 128, &full);
        look(&full, parity);
        u64 left = descriptor(of_a), right = descriptor(of_b);
        for (int part = 0; part < 64; part += 16, left += 2, right += 2)
            multiply<1>(sums, left, right, ONE, first || part);
        ptx::tcgen05_commit(ptx::cta_group_1, &read);
        look(&read, parity);
    };
    if (thread == 96) {
        for (int first = 0, parity = 0; first < k; first += 64, parity ^= 1) step(first, parity);
        ptx::tcgen05_commit(ptx::cta_group_1, &over);
    }
    look(&over, 0);
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_ld_32x32b(bits, sums + (warp << 21));
    ptx::tcgen05_wait_ld();
    store_row(bits, &c[(blockIdx.y * 128 + thread) * n + blockIdx.x * 64]);
    __syncthreads();
    if (warp == 1) ptx::tcgen05_dealloc(ptx::cta_group_1, sums, 64);
}
""",
    "asking",
)


def by_one_thread(left, right, result):
    rows, depth = left.shape
    columns = len(right)
    boxes = {128: left, 64: right}
    maps = [gpulab.tensor_map(array, (box, 64), swizzle=128) for box, array in boxes.items()]
    asking((columns // 64, rows // 128), (128,), (*maps, result, cp.int32(columns), cp.int32(depth)))
