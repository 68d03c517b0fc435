// Kernels that use the headers of CUDA C++. With MENDED they are right; comments mark the lines of the finding.

#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

struct Particle {
    float x, y;
    int hits, cell;
};

extern "C" __global__ void a_field_of_a_shared_struct_is_read_too_early(const float* x, float* y)
{
    __shared__ Particle near[64];
    int t = threadIdx.x;
    near[t].x = x[t];  // first
    near[t].hits = t;
#ifdef MENDED
    __syncthreads();
#endif
    y[t] = near[63 - t].x;  // second
}

extern "C" __global__ void a_tile_of_a_group_waits_where_the_block_must(const float* x, float* y)
{
    __shared__ float s[64];
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    int t = threadIdx.x;
    s[t] = x[t];  // first
#ifdef MENDED
    block.sync();
#else
    tile.sync();
#endif
    y[t] = s[63 - t];  // second
}

extern "C" __global__ void a_small_tile_waits_and_a_lane_outside_it_reads(const float* x, float* y)
{
    __shared__ float s[32];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int t = threadIdx.x;
    s[t] = x[t];  // first
    tile.sync();
#ifdef MENDED
    y[t] = s[t / 8 * 8 + (t + 1) % 8];
#else
    y[t] = s[(t + 8) % 32];  // second
#endif
}

extern "C" __global__ void a_two_stage_pipeline_waits_too_little(const float* x, float* y, int n)
{
    __shared__ float stage[2][64];
    int t = threadIdx.x;
    float total = 0;
    __pipeline_memcpy_async(&stage[0][t], &x[t], 4);
    __pipeline_commit();
    for (int k = 0; k < n; ++k) {
        if (k + 1 < n) __pipeline_memcpy_async(&stage[(k + 1) % 2][t], &x[64 * (k + 1) + t], 4);  // first
#ifdef MENDED
        __pipeline_commit();
#else
        if (k + 1 < n) __pipeline_commit();
#endif
        __pipeline_wait_prior(1);
        total += stage[k % 2][t];  // second
    }
    y[t] = total;
}

extern "C" __global__ void an_atomic_ref_of_one_block_counts_for_all(int* y)
{
#ifdef MENDED
    cuda::atomic_ref<int, cuda::thread_scope_device> count(y[0]);
#else
    cuda::atomic_ref<int, cuda::thread_scope_block> count(y[0]);
#endif
    count.fetch_add(1, cuda::memory_order_relaxed);  // first, second
}

extern "C" __global__ void a_relaxed_flag_hands_nothing_over(float* data, int* flag, float* y)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> f(flag[0]);
    if (blockIdx.x == 0) {
        data[0] = 42;  // first
#ifdef MENDED
        f.store(1, cuda::memory_order_release);
#else
        f.store(1, cuda::memory_order_relaxed);
#endif
    } else {
#ifdef MENDED
        while (f.load(cuda::memory_order_acquire) == 0) { }
#else
        while (f.load(cuda::memory_order_relaxed) == 0) { }
#endif
        y[0] = data[0];  // second
    }
}

extern "C" __global__ void a_single_buffer_is_filled_by_copies_while_it_is_read(const float* x, float* y, int n)
{
    __shared__ float stage[64];
    int t = threadIdx.x;
    float total = 0;
    for (int k = 0; k < n; ++k) {
        __pipeline_memcpy_async(&stage[t], &x[64 * k + t], 4);  // second
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        total += stage[63 - t];  // first
#ifdef MENDED
        __syncthreads();
#endif
    }
    y[t] = total;
}
