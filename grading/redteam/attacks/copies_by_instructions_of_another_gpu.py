# how: copies by instructions of Hopper, whose bytes and requests no budget counts
# exercise: cpp.copy4
# earns: 0
# says: cp.async.bulk is an instruction of GPUs of compute capability 9.0
copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    __shared__ __align__(128) float tile[256];
    __shared__ __align__(8) unsigned long long bar;
    unsigned place = (unsigned)__cvta_generic_to_shared(&bar), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(place));
    __syncthreads();
    int phase = 0;
    for (int i = blockIdx.x; i < n / 256; i += gridDim.x) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" :: "r"(place));
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                :: "r"(to), "l"(a + 256 * i), "r"(place) : "memory");
        }
        int over = 0;
        while (!over)
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                : "=r"(over) : "r"(place), "r"(phase) : "memory");
        phase ^= 1;
        b[256 * i + threadIdx.x] = tile[threadIdx.x];
        __syncthreads();
    }
    for (int i = n / 256 * 256 + blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) b[i] = a[i];
}
""",
    "copy4",
)
