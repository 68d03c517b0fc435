// Kernels in which a warpgroup multiplies. With MENDED they are right; comments mark the lines of the finding.
// A is 64 × 16 and B 8 × 16 halves, in tiles of 8 rows of 16 bytes; each thread holds four sums.

#include <cuda/ptx>
#include <cuda_fp16.h>

namespace ptx = cuda::ptx;

#define WRITTEN asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")
#define MULTIPLY(d, a, b) asm volatile( \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" \
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(tile(a)), "l"(tile(b)))
#define MULTIPLY_HELD(d, a, b) asm volatile( \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;" \
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile(b)))

__device__ unsigned long long tile(const __half* start, unsigned leading = 128, unsigned stride = 256)
{
    unsigned long long at = __cvta_generic_to_shared(start);
    return at >> 4 | (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32;
}

__device__ void store(float* y, const float* d)
{
    for (int i = 0; i < 4; ++i)
        y[threadIdx.x * 4 + i] = d[i];
}

extern "C" __global__ void a_sum_is_read_before_its_product_is_there(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    FENCE;
    MULTIPLY(d, a, b);  // first
    COMMIT;
#ifdef MENDED
    WAIT(0);
#endif
    y[threadIdx.x] = d[0];  // second
    WAIT(0);
}

extern "C" __global__ void a_wait_leaves_one_product_too_many(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {}, e[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    FENCE;
    MULTIPLY(d, a, b);
    COMMIT;
    MULTIPLY(e, a, b);  // first
    COMMIT;
#ifdef MENDED
    WAIT(0);
#else
    WAIT(1);
#endif
    y[threadIdx.x] = d[0];
    y[threadIdx.x] = e[0];  // second
    WAIT(0);
}

extern "C" __global__ void an_accumulator_is_cleared_without_a_fence(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    float d[4];
    for (int i = 0; i < 4; ++i)
        d[i] = __half2float(x[i]);  // first
#ifdef MENDED
    FENCE;
#endif
    MULTIPLY(d, a, b);  // second
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void a_in_registers_has_no_fence(const __half* x, float* y)
{
    __shared__ alignas(128) __half b[128];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    float d[4] = {};
    FENCE;
    unsigned a[4];
    const unsigned* words = reinterpret_cast<const unsigned*>(x);
    for (int i = 0; i < 4; ++i)
        a[i] = words[threadIdx.x * 4 + i];  // first
#ifdef MENDED
    FENCE;
#endif
    MULTIPLY_HELD(d, a, b);  // second
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void a_tile_is_not_fenced_for_the_tensor_cores(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    b[threadIdx.x] = x[threadIdx.x + 128];  // first
#ifdef MENDED
    WRITTEN;
#endif
    __syncthreads();
    FENCE;
    MULTIPLY(d, a, b);  // second
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void a_tile_is_filled_again_before_the_wait(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    FENCE;
    MULTIPLY(d, a, b);  // first
    COMMIT;
#ifdef MENDED
    WAIT(0);
#endif
    __syncthreads();
    b[threadIdx.x] = x[threadIdx.x + 128];  // second
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void a_tile_comes_again_before_the_wait(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    __shared__ unsigned long long full;
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    WRITTEN;
    __syncthreads();
    for (int k = 0; k < 2; ++k) {
        if (threadIdx.x == 0) {
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, 256);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, b, x + 128 * k, 256, &full);  // second
        }
        while (!ptx::mbarrier_try_wait_parity(&full, k)) {}
        FENCE;
        MULTIPLY(d, a, b);  // first
        COMMIT;
#ifdef MENDED
        WAIT(0);
#endif
        __syncthreads();
    }
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void a_tile_has_no_barrier(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    __syncthreads();
    b[threadIdx.x] = x[threadIdx.x];  // first
    WRITTEN;
#ifdef MENDED
    __syncthreads();
#endif
    FENCE;
    MULTIPLY(d, a, b);  // second
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void a_descriptor_steps_too_far(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[2048], b[128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    FENCE;
#ifdef MENDED
    unsigned long long left = tile(a);
#else
    unsigned long long left = tile(a, 128, 512);
#endif
    asm volatile(  // here
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(left), "l"(tile(b)));
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void a_tile_reaches_beyond_shared_memory(const __half* x, float* y)
{
    extern __shared__ __half tiles[];
    float d[4] = {};
    __half *a = tiles, *b = tiles + 1024;
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    FENCE;
#ifndef MENDED
    b += 128;
#endif
    MULTIPLY(d, a, b);  // here
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void one_warp_of_a_warpgroup_has_left(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
#ifndef MENDED
    if (threadIdx.x >= 96)
        return;
#endif
    FENCE;  // here
    MULTIPLY(d, a, b);
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __launch_bounds__(384, 1) __global__ void warpgroups_take_more_registers_than_there_are(float* y)
{
    if (threadIdx.x < 128)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    else
#ifdef MENDED
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
#else
        asm volatile("setmaxnreg.inc.sync.aligned.u32 248;");  // here
#endif
    y[threadIdx.x] = 1;
}

// ---- what looks wrong and is right ------------------------------------------------------------------

extern "C" __global__ void products_of_one_shape_need_no_fence_between_them(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    FENCE;
    MULTIPLY(d, a, b);
    MULTIPLY(d, a, b);
    COMMIT;
    MULTIPLY(d, a, b);
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void those_who_read_fence_what_others_wrote(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    WRITTEN;
    FENCE;
    MULTIPLY(d, a, b);
    COMMIT;
    WAIT(0);
    store(y, d);
}

extern "C" __global__ void the_older_of_two_products_is_used(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    float d[4] = {}, e[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    FENCE;
    MULTIPLY(d, a, b);
    COMMIT;
    MULTIPLY(e, a, b);
    COMMIT;
    WAIT(1);
    y[threadIdx.x] = d[0];
    WAIT(0);
    y[threadIdx.x] += e[0];
}

// One lane of each warp gives the stage back: the wait is the whole warp's.
extern "C" __global__ void a_lane_gives_back_what_its_warp_has_multiplied(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[128];
    __shared__ unsigned long long empty;
    float d[4] = {};
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 4;" ::"l"(__cvta_generic_to_shared(&empty)) : "memory");
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    FENCE;
    MULTIPLY(d, a, b);
    COMMIT;
    WAIT(0);
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"l"(__cvta_generic_to_shared(&empty)) : "memory");
    if (threadIdx.x == 0) {
        asm volatile(
            "{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra W; }"
            ::"l"(__cvta_generic_to_shared(&empty)) : "memory");
        for (int i = 0; i < 128; i++)
            b[i] = x[i];
    }
    store(y, d);
}

extern "C" __global__ void another_stage_is_filled_during_a_product(const __half* x, float* y)
{
    __shared__ alignas(128) __half a[1024], b[2][128];
    float d[4] = {};
    for (int i = threadIdx.x; i < 1024; i += 128)
        a[i] = x[i];
    b[0][threadIdx.x] = x[threadIdx.x];
    WRITTEN;
    __syncthreads();
    for (int stage = 0; stage < 2; ++stage) {
        FENCE;
        MULTIPLY(d, a, b[stage]);
        COMMIT;
        if (stage == 0)
            b[1][threadIdx.x] = x[threadIdx.x + 128];
        WRITTEN;
        WAIT(0);
        __syncthreads();
    }
    store(y, d);
}
