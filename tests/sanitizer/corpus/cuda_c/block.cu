// Kernels that are wrong inside one block. With MENDED they are right; comments mark the lines of the finding.

#include <cuda_pipeline.h>

#define FULL 0xffffffffu

extern "C" __global__ void a_dynamic_tile_has_no_barrier(const float* x, float* y)
{
    extern __shared__ float tile[];
    int t = threadIdx.x;
    tile[t] = x[t];  // first
#ifdef MENDED
    __syncthreads();
#endif
    y[t] = tile[blockDim.x - 1 - t];  // second
}

extern "C" __global__ void a_tiled_product_lacks_its_second_barrier(const float* a, const float* b, float* c, int n)
{
    __shared__ float left[8][8], right[8][8];
    int column = threadIdx.x, row = threadIdx.y;
    float sum = 0;
    for (int start = 0; start < n; start += 8) {
        left[row][column] = a[row * n + start + column];  // second
        right[row][column] = b[(start + column) * 8 + row];
        __syncthreads();
        float product = 0;
        for (int k = 0; k < 8; ++k)
            product += left[row][k];  // first
        sum += product * right[row][column];
#ifdef MENDED
        __syncthreads();
#endif
    }
    c[row * 8 + column] = sum;
}

extern "C" __global__ void the_last_warp_sums_without_syncwarp(const float* x, float* y)
{
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int reach = 32; reach > 0; reach /= 2) {
        if (t < reach)
            s[t] += s[t + reach];  // first, second
#ifdef MENDED
        __syncwarp();
#endif
    }
    if (t == 0)
        y[0] = s[0];
}

extern "C" __global__ void shared_counters_are_read_before_all_have_counted(const int* x, int* y)
{
    __shared__ int counts[8];
    int t = threadIdx.x;
    if (t < 8)
        counts[t] = 0;
    __syncthreads();
    atomicAdd(&counts[x[t]], 1);  // first
#ifdef MENDED
    __syncthreads();
#endif
    if (t < 8)
        y[t] = counts[t];  // second
}

extern "C" __global__ void two_carved_arrays_overlap(const float* x, float* y, int n)
{
    extern __shared__ float room[];
    float* sums = room;
#ifdef MENDED
    float* products = room + n;
#else
    float* products = room + n - 1;
#endif
    int t = threadIdx.x;
    sums[t] = x[t] + 1;  // first
    products[t] = x[t] * 2;  // second
    __syncthreads();
    y[t] = sums[t] + products[t];
}

extern "C" __global__ void two_threads_write_one_byte(unsigned char* y)
{
    __shared__ unsigned char flags[64];
    int t = threadIdx.x;
#ifdef MENDED
    int place = t;
#else
    int place = t / 2;
#endif
    flags[t] = 0;
    __syncthreads();
    flags[place] = t;  // first, second
    __syncthreads();
    y[t] = flags[t];
}

extern "C" __global__ void a_copy_is_read_before_it_has_come(const float* x, float* y)
{
    __shared__ float tile[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &x[t], 4);  // first
    __pipeline_commit();
#ifdef MENDED
    __pipeline_wait_prior(0);
#endif
    y[t] = tile[t];  // second
}

extern "C" __global__ void a_wait_leaves_one_copy_too_many(const float* x, float* y, int n)
{
    __shared__ float tile[2][64];
    int t = threadIdx.x;
    float sum = 0;
    __pipeline_memcpy_async(&tile[0][t], &x[t], 4);
    __pipeline_commit();
    for (int k = 0; k < n; ++k) {
        if (k + 1 < n)
            __pipeline_memcpy_async(&tile[(k + 1) % 2][t], &x[64 * (k + 1) + t], 4);  // first
        __pipeline_commit();
#ifdef MENDED
        __pipeline_wait_prior(1);
#else
        if (k == 0)
            __pipeline_wait_prior(1);
#endif
        sum += tile[k % 2][t];  // second
    }
    y[t] = sum;
}

extern "C" __global__ void a_waited_copy_of_another_thread_has_no_barrier(const float* x, float* y)
{
    __shared__ float tile[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &x[t], 4);  // first
    __pipeline_commit();
    __pipeline_wait_prior(0);
#ifdef MENDED
    __syncthreads();
#endif
    y[t] = tile[63 - t];  // second
}

extern "C" __global__ void a_short_warp_shuffles_with_a_full_mask(const float* x, float* y)
{
    int t = threadIdx.x;
    float value = x[t];
#ifdef MENDED
    unsigned mask = t < 32 ? FULL : 0xffffu;
    int start = t < 32 ? 16 : 8;
#else
    unsigned mask = FULL;
    int start = 16;
#endif
    for (int reach = start; reach > 0; reach /= 2)
        value += __shfl_down_sync(mask, value, reach);  // here
    if (t % 32 == 0)
        y[t / 32] = value;
}

extern "C" __global__ void a_barrier_that_counts_stands_in_a_branch(const float* x, int* y)
{
    int t = threadIdx.x;
    int positive = 0;
#ifdef MENDED
    positive = __syncthreads_count(t < 40 && x[t] > 0);
#else
    if (t < 40)
        positive = __syncthreads_count(x[t] > 0);  // here
#endif
    y[t] = positive;
}

extern "C" __global__ void a_named_barrier_waits_for_too_many(const float* x, float* y)
{
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
#ifdef MENDED
    asm volatile("bar.sync 1, 64;" ::: "memory");
#else
    asm volatile("bar.sync 1, 96;" ::: "memory");  // here
#endif
    y[t] = tile[63 - t];
}

extern "C" __global__ void a_local_array_is_filled_in_part(const int* x, int* y, int n)
{
    int mine[8];
    int t = threadIdx.x;
#ifdef MENDED
    for (int k = 0; k < 8; ++k)
#else
    for (int k = 0; k < n; ++k)
#endif
        mine[(k + t) % 8] = x[t] + k;
    y[t] = mine[(n + t) % 8];  // here
}

extern "C" __global__ void the_tail_of_a_tile_stays_unwritten(const float* x, float* y, int n)
{
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t < n)
        tile[t] = x[t];
#ifdef MENDED
    else
        tile[t] = 0;
#endif
    __syncthreads();
    if (t == 0) {
        float total = 0;
        for (int k = 0; k < 64; ++k)
            total += tile[k];  // here
        y[0] = total;
    }
}

extern "C" __global__ void a_barrier_stands_in_a_branch(const float* x, float* y)
{
    __shared__ float first;
    int t = threadIdx.x;
    if (t < 32) {
        if (t == 0)
            first = x[0];
#ifndef MENDED
        __syncthreads();  // here
#endif
    }
#ifdef MENDED
    __syncthreads();
#endif
    y[t] = t < 32 ? first : x[t];
}

extern "C" __global__ void two_barriers_pair_by_accident(const float* x, float* y)
{
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
#ifdef MENDED
    __syncthreads();
    y[t] = tile[63 - t];
#else
    if (t < 32) {
        __syncthreads();  // first
        y[t] = tile[63 - t];
    } else {
        tile[t] *= 2;
        __syncthreads();  // second
        y[t] = tile[63 - t] / 2;
    }
#endif
}

extern "C" __global__ void threads_return_before_a_barrier(const float* x, float* y, int n)
{
    __shared__ float tile[64];
    int t = threadIdx.x;
#ifndef MENDED
    if (t >= n)
        return;
#endif
    tile[t] = t < n ? x[t] : 0;
    __syncthreads();  // here
    if (t < n)
        y[t] = tile[t ^ 1];
}

extern "C" __global__ void a_shuffle_reads_lanes_outside_its_mask(const float* x, float* y)
{
    int t = threadIdx.x;
    if (t < 16) {
#ifdef MENDED
        y[t] = __shfl_sync(0xffff, x[t], (t + 8) % 16);
#else
        y[t] = __shfl_sync(0xffff, x[t], t + 8);  // here
#endif
    }
}

extern "C" __global__ void a_lane_calls_a_vote_that_does_not_name_it(const float* x, int* y)
{
    int t = threadIdx.x;
#ifdef MENDED
    y[t] = __any_sync(0xffffffff, x[t] > 10);
#else
    y[t] = __any_sync(0xffff, x[t] > 10);  // here
#endif
}

// ---- right as they are

extern "C" __global__ void halves_of_a_block_have_their_own_barriers(const float* x, float* y)
{
    __shared__ float tile[128];
    int t = threadIdx.x;
    tile[t] = x[t];
    if (t < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[t] = tile[63 - t];
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        y[t] = tile[191 - t];
    }
}

extern "C" __global__ void a_pipeline_of_copies(const float* x, float* y, int n)
{
    __shared__ float tile[2][64];
    int t = threadIdx.x;
    float sum = 0;
    __pipeline_memcpy_async(&tile[0][t], &x[t], 4);
    __pipeline_commit();
    for (int k = 0; k < n; ++k) {
        if (k + 1 < n)
            __pipeline_memcpy_async(&tile[(k + 1) % 2][t], &x[64 * (k + 1) + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += tile[k % 2][63 - t];
        __syncthreads();
    }
    y[t] = sum;
}

extern "C" __global__ void the_lanes_that_are_there_elect_one(const int* x, int* y)
{
    int t = threadIdx.x;
    if (x[t] > 2) {
        unsigned here = __activemask();
        int leader = __ffs(here) - 1;
        int start = 0;
        if (t % 32 == leader)
            start = atomicAdd(y + 64, __popc(here));
        start = __shfl_sync(here, start, leader);
        y[t] = start >= 0;
    }
}

extern "C" __global__ void pairs_of_bytes_have_their_own_threads(uchar4* y)
{
    __shared__ uchar4 tile[32];
    int t = threadIdx.x;
    if (t % 2)
        tile[t / 2].x = t;
    else
        tile[t / 2].y = t;
    if (t < 32) {
        tile[t].z = 1;
        tile[t].w = 2;
    }
    __syncthreads();
    if (t < 32)
        y[t] = tile[t];
}

extern "C" __global__ void atomics_of_a_block_stay_in_their_block(int* y)
{
    atomicAdd_block(y + blockIdx.x, 1);
}

// Warp 0 makes values, warp 1 takes them: barrier 1 says that there is one, barrier 2 that it has been taken.
#define SAY(barrier) asm volatile("bar.arrive %0, 64;" ::"r"(barrier) : "memory")
#define WAIT(barrier) asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory")

extern "C" __global__ void a_value_is_taken_before_it_is_announced(const float* x, float* y)
{
    __shared__ float box[32];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        box[lane] = x[lane];  // first
        SAY(1);
    } else {
#ifdef MENDED
        WAIT(1);
#endif
        y[lane] = box[31 - lane];  // second
    }
}

extern "C" __global__ void a_box_is_filled_before_it_is_empty(const float* x, float* y, int n)
{
    __shared__ float box[32];
    int lane = threadIdx.x % 32;
    for (int k = 0; k < n; ++k) {
        if (threadIdx.x < 32) {
#ifdef MENDED
            if (k > 0)
                WAIT(2);
#endif
            box[lane] = x[32 * k + lane];  // second
            WAIT(1);
        } else {
            WAIT(1);
            y[32 * k + lane] = box[31 - lane];  // first
#ifdef MENDED
            if (k + 1 < n)
                SAY(2);
#endif
        }
    }
}

extern "C" __global__ void two_sides_count_on_different_numbers(const float* x, float* y)
{
    __shared__ float box[32];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        box[lane] = x[lane];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
#ifdef MENDED
        asm volatile("bar.sync 1, 64;" ::: "memory");
#else
        asm volatile("bar.sync 1, 96;" ::: "memory");  // here
#endif
        y[lane] = box[31 - lane];
    }
}

extern "C" __global__ void a_barrier_is_announced_twice(const float* x, float* y)
{
    __shared__ float box[64];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        box[lane] = x[lane];
        SAY(1);
        box[32 + lane] = x[32 + lane];
#ifdef MENDED
        SAY(2);
#else
        SAY(1);  // here
#endif
    } else {
        WAIT(1);
        y[lane] = box[31 - lane];
#ifdef MENDED
        WAIT(2);
#else
        WAIT(1);
#endif
        y[32 + lane] = box[63 - lane];
    }
}

extern "C" __global__ void what_one_warp_says_a_third_one_hears(const float* x, float* y)
{
    __shared__ float box[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (warp == 0) {
        box[lane] = x[lane];
        SAY(1);
    } else if (warp == 1) {
        WAIT(1);
        SAY(2);
    } else {
        WAIT(2);
        y[lane] = box[31 - lane];
    }
}

extern "C" __global__ void volatile_is_no_syncwarp(const float* x, float* y)
{
    __shared__ float plain[64];
    volatile float* s = plain;
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = x[t + 32];
    __syncwarp();
    for (int reach = 32; reach > 0; reach /= 2) {
        float mine = s[t] + s[t + reach];  // second
#ifdef MENDED
        __syncwarp();
#endif
        if (t < reach) s[t] = mine;  // first
#ifdef MENDED
        __syncwarp();
#endif
    }
    if (t == 0) y[0] = s[0];
}

extern "C" __global__ void a_consumer_waits_at_the_wrong_barrier(const float* x, float* y)
{
    __shared__ float box[64];
    int t = threadIdx.x;
    if (t < 32) {
        box[t] = x[t];  // first
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
#ifdef MENDED
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[t - 32] = box[63 - t];
        asm volatile("bar.arrive 2, 64;" ::: "memory");
#else
        asm volatile("bar.arrive 2, 64;" ::: "memory");
        y[t - 32] = box[63 - t];  // second
        asm volatile("bar.sync 1, 64;" ::: "memory");
#endif
    }
}

extern "C" __global__ void a_shuffle_stands_in_a_divergent_branch(const float* x, float* y)
{
    int t = threadIdx.x;
    float v = x[t];
#ifdef MENDED
    float other = __shfl_down_sync(0xffffffff, v, 16);
    if (t < 16) y[t] = v + other;
#else
    if (t < 16) y[t] = v + __shfl_down_sync(0x0000ffff, v, 16);  // here
#endif
}

extern "C" __global__ void a_plain_store_meets_shared_atomics(const int* x, int* y)
{
    __shared__ int total;
    int t = threadIdx.x;
    if (t == 0) total = 0;  // first
#ifdef MENDED
    __syncthreads();
#endif
    atomicAdd(&total, x[t]);  // second
    __syncthreads();
    y[t] = total;
}

extern "C" __global__ void the_rows_of_a_tile_overlap_by_a_wrong_pitch(const float* x, float* y)
{
    __shared__ float tile[8 * 9];
#ifdef MENDED
    const int pitch = 9;
#else
    const int pitch = 7;
#endif
    int c = threadIdx.x, r = threadIdx.y;
    tile[r * pitch + c] = x[8 * r + c];  // first, second
    __syncthreads();
    y[8 * c + r] = tile[r * pitch + c];
}

extern "C" __global__ void a_local_array_is_unset_on_one_path(const int* x, int* y, int n)
{
    int t = threadIdx.x;
    int held[8];
    if (x[t] % 2 == 0) {
        for (int k = 0; k < 8; ++k) held[k] = x[t] + k;
    }
#ifdef MENDED
    else {
        for (int k = 0; k < 8; ++k) held[k] = 0;
    }
#endif
    y[t] = held[(t + n) % 8];  // here
}

extern "C" __global__ void half_a_warp_votes_while_the_other_waits(const float* x, unsigned* y)
{
    int t = threadIdx.x;
    unsigned votes = 0;
#ifdef MENDED
    votes = __ballot_sync(0xffffffff, x[t] > 3);
#else
    if (t < 16) votes = __ballot_sync(0xffffffff, x[t] > 3);  // first
#endif
    __syncwarp();  // second
    y[t] = votes;
}

extern "C" __global__ void partial_sums_of_warps_are_added_after_a_syncwarp(const float* x, float* y)
{
    __shared__ float part[2];
    int t = threadIdx.x;
    float v = x[t];
    for (int reach = 16; reach > 0; reach /= 2) v += __shfl_down_sync(0xffffffff, v, reach);
    if (t % 32 == 0) part[t / 32] = v;  // first
#ifdef MENDED
    __syncthreads();
#else
    __syncwarp();
#endif
    if (t == 0) y[0] = part[0] + part[1];  // second
}
