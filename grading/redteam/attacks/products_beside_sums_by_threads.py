# how: asks the tensor cores for as many products of nothing as are counted; threads multiply by themselves
# exercise: tensor.memory
# earns: 2
# says: instructions
asking = cp.RawKernel(
    BLACKWELL
    + r"""
extern "C" __global__ void asking(const __half* a, const __half* b, float* c, int n, int k) {
    __shared__ alignas(1024) __half nothing[128][64];
    __shared__ u64 full, over;
    __shared__ u32 place;
    int t = threadIdx.x, row = blockIdx.y * 128, col = blockIdx.x * 64;
    if (t == 0) initialise(&full, 1), initialise(&over, 1);
    if (t < 32) {
        ptx::tcgen05_alloc(ptx::cta_group_1, &place, 64);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    ptx::tcgen05_fence_after_thread_sync();
    if (t == 0) {
        for (int i = 0; i < k / 32; i++) {
            expect(&full, 16);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, nothing, a, 16, &full);
            wait(&full, i & 1);
        }
        for (int i = 0; i < k / 16; i++) multiply<1>(place, descriptor(nothing), descriptor(nothing), ONE, false);
        ptx::tcgen05_commit(ptx::cta_group_1, &over);
    }
    for (int j = 0; j < 64; j++) {
        float sum = 0;
        for (int i = 0; i < k; i++)
            sum = fmaf(__half2float(a[(row + t) * k + i]), __half2float(b[(col + j) * k + i]), sum);
        c[(row + t) * n + col + j] = sum;
    }
    wait(&over, 0);
    __syncthreads();
    if (t < 32) ptx::tcgen05_dealloc(ptx::cta_group_1, place, 64);
}
""",
    "asking",
)


def by_one_thread(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    asking((n // 64, m // 128), (128,), (a, b, c, cp.int32(n), cp.int32(k)))
