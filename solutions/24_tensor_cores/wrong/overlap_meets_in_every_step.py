# exercise: tensor.overlap  fails: block barriers  says: naive
import gpulab
from gpulab import cupy as cp

HEAD = r"""
#include <cuda/ptx>
#include <cuda_fp16.h>
namespace ptx = cuda::ptx;
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(64) CUtensorMap { u64 opaque[16]; };

__device__ void expect(u64* full, u32 bytes) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, bytes);
}
__device__ void wait(u64* bar, int parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {}
}
__device__ void initialise(u64* bar, int arrivals) {
    ptx::mbarrier_init(bar, arrivals);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
}
__device__ void copy(void* to, const CUtensorMap* map, int column, int row, u64* full) {
    int at[2] = {column, row};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, map, at, full);
}

__device__ u64 descriptor(const void* tile) {           // rows of 128 bytes with the 128-byte swizzle
    u64 at = __cvta_generic_to_shared(tile);
    return at >> 4 | u64(1) << 16 | u64(1024 >> 4) << 32 | u64(1) << 62;
}
__device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
__device__ void multiply(float (&d)[32], u64 a, u64 b, bool adds) {          // 64 × 64 × 16, float16
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %34, 0;"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) : "l"(a), "l"(b), "r"(int(adds)));
}
__device__ void multiply8(float (&d)[32], u64 a, u64 b, bool adds) {         // 64 × 64 × 32, e4m3
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %34, 0;"
        "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) : "l"(a), "l"(b), "r"(int(adds)));
}
__device__ void store(const float (&d)[32], float* c, int n) {               // c: the first element of the tile
    int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
    for (int j = 0; j < 8; j++)
        for (int below = 0; below < 2; below++)
            *reinterpret_cast<float2*>(&c[(row + 8 * below) * n + 8 * j + col]) =
                make_float2(d[4 * j + 2 * below], d[4 * j + 2 * below + 1]);
}
"""

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
        for (int step = 0; step < k / 64; step++) {
            asm volatile("bar.sync 0;" ::: "memory");
            if (t == 128) {
                int s = step % 3;
                wait(&empty[s], (step / 3 & 1) ^ 1);
                expect(&full[s], 16384);
                copy(slots + s * 8192, &a, step * 64, row, &full[s]);
                copy(slots + s * 8192 + 4096, &b, step * 64, col, &full[s]);
            }
        }
        return;
    }
    float d[32];
    for (int step = 0; step < k / 64; step++) {
        int s = step % 3;
        asm volatile("bar.sync 0;" ::: "memory");
        wait(&full[s], step / 3 & 1);
        u64 left = descriptor(slots + s * 8192), right = descriptor(slots + s * 8192 + 4096);
        begin_products();
        for (int i = 0; i < 4; i++) multiply(d, left + 2 * i, right + 2 * i, step + i > 0);
        end_products();
        wait_products<1>();
        if (t % 32 == 0 && step > 0) ptx::mbarrier_arrive(&empty[(step - 1) % 3]);
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
