// Kernels in which Blackwell's tensor cores multiply for one thread. With MENDED they are right; comments mark
// the lines of the finding. A is 64 × 16 and B 8 × 16 halves, in tiles of 8 rows of 16 bytes; the sums are in
// 8 columns of Tensor Memory, those of rows 16·w to 16·w + 15 in the lanes of warp w.

#include <cuda_fp16.h>

using u64 = unsigned long long;

#define WRITTEN asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define BEFORE asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory")
#define AFTER asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory")
#define INIT(bar, count) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(bar)), "r"(count) : "memory")
#define ALLOCATE(slot, columns) asm volatile( \
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at(slot)), "r"(columns) : "memory")
#define FREE(place, columns) asm volatile( \
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(place), "r"(columns) : "memory")
#define GIVE_UP asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory")
#define MULTIPLY(d, a, b, what, adds) asm volatile( \
    "{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" \
    ::"r"(d), "l"(a), "l"(b), "r"(what), "r"((unsigned)(adds)) : "memory")
#define MULTIPLY_HELD(d, a, b, what) asm volatile( \
    "{ .reg .pred p; setp.ne.u32 p, 0, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p; }" \
    ::"r"(d), "r"(a), "l"(b), "r"(what) : "memory")
#define COMMIT(bar) asm volatile( \
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(at(bar)) : "memory")
#define WAIT(bar, parity) asm volatile( \
    "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra AGAIN; }" \
    ::"r"(at(bar)), "r"(parity) : "memory")
#define BRING(b, from, bar) \
    asm volatile( \
        "mbarrier.arrive.expect_tx.shared.b64 _, [%2], 256;\n" \
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" \
        ::"r"(at(b)), "l"(from), "r"(at(bar)) : "memory")
#define LOAD(d, place) asm volatile( \
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(d) : "r"(place) : "memory")
#define LOADED asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define STORE(place, d) asm volatile( \
    "tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(place), "r"(d) : "memory")
#define STORED asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")

#define PLAIN (4u << 24 | 1u << 17 | 1u << 4)  // 64 rows, 8 columns, sums of float32

__device__ unsigned at(const void* place) { return __cvta_generic_to_shared(place); }

__device__ u64 tile(const __half* start, unsigned leading = 128, unsigned stride = 256, u64 version = 1)
{
    return (u64)(at(start) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | version << 46;
}

__device__ unsigned own(unsigned place) { return place + (threadIdx.x / 32 * 32 << 16); }

// Tiles that are filled, an mbarrier for one arrival, and 32 columns of Tensor Memory at `sums`.
#define BEGIN \
    __shared__ alignas(128) __half a[1024], b[128]; \
    __shared__ u64 done; \
    __shared__ unsigned slot; \
    for (int i = threadIdx.x; i < 1024; i += 128) a[i] = x[i]; \
    b[threadIdx.x] = x[threadIdx.x]; \
    if (threadIdx.x == 0) INIT(&done, 1); \
    if (threadIdx.x < 32) ALLOCATE(&slot, 32); \
    WRITTEN; \
    __syncthreads(); \
    unsigned sums = slot; \
    unsigned sum = 0

#define END(columns) \
    y[threadIdx.x] = __uint_as_float(sum); \
    __syncthreads(); \
    if (threadIdx.x < 32) FREE(sums, columns)

// ---- too early -----------------------------------------------------------------------------------

extern "C" __global__ void a_sum_is_read_before_its_product_is_there(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);  // first
        COMMIT(&done);
    }
#ifdef MENDED
    WAIT(&done, 0);
#endif
    __syncthreads();
    LOAD(sum, own(sums));  // second
    LOADED;
    WAIT(&done, 0);
    END(32);
}

extern "C" __global__ void a_parity_is_one_round_ahead(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);  // first
        COMMIT(&done);
    }
#ifdef MENDED
    WAIT(&done, 0);
#else
    WAIT(&done, 1);
#endif
    LOAD(sum, own(sums));  // second
    LOADED;
    WAIT(&done, 0);
    END(32);
}

extern "C" __global__ void a_product_is_asked_for_behind_the_commit(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
#ifndef MENDED
        COMMIT(&done);
#endif
        MULTIPLY(sums + 8, tile(a), tile(b), PLAIN, 0);  // first
#ifdef MENDED
        COMMIT(&done);
#endif
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums + 8));  // second
    LOADED;
    END(32);
}

extern "C" __global__ void a_product_of_the_second_round_is_not_waited_for(const __half* x, float* y)
{
    BEGIN;
    for (int round = 0; round < 2; ++round) {
        if (threadIdx.x == 0) {
            MULTIPLY(sums, tile(a), tile(b), PLAIN, round);  // first
            COMMIT(&done);
        }
#ifdef MENDED
        WAIT(&done, round);
#else
        WAIT(&done, round ^ round);
#endif
        __syncthreads();
    }
    LOAD(sum, own(sums));  // second
    LOADED;
    WAIT(&done, 1);
    END(32);
}

extern "C" __global__ void a_tile_is_filled_again_before_the_wait(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);  // first
        COMMIT(&done);
    }
#ifdef MENDED
    WAIT(&done, 0);
#endif
    __syncthreads();
    b[threadIdx.x] = x[threadIdx.x + 128];  // second
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void a_stage_is_filled_by_a_copy_before_the_wait(const __half* x, float* y)
{
    BEGIN;
    __shared__ u64 full;
    if (threadIdx.x == 0) INIT(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);  // first
        COMMIT(&done);
#ifdef MENDED
        WAIT(&done, 0);
#endif
        BRING(b, x + 128, &full);  // second
    }
    WAIT(&full, 0);
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void a_loaded_register_is_used_before_the_wait(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));  // first
#ifdef MENDED
    LOADED;
#endif
    y[threadIdx.x + 128] = __uint_as_float(sum) * 2;  // second
    LOADED;
    END(32);
}

extern "C" __global__ void an_a_is_multiplied_before_it_is_stored(const __half* x, float* y)
{
    BEGIN;
    for (int i = 0; i < 8; ++i)
        STORE(own(sums + 16 + i), threadIdx.x);  // first
#ifdef MENDED
    STORED;
#endif
    BEFORE;
    __syncthreads();
    AFTER;
    if (threadIdx.x == 0) {
        MULTIPLY_HELD(sums, sums + 16, tile(b), PLAIN);  // second
        COMMIT(&done);
    }
    WAIT(&done, 0);
    STORED;
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void a_sum_is_cleared_during_its_product(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);  // first
        COMMIT(&done);
    }
#ifdef MENDED
    WAIT(&done, 0);
#endif
    STORE(own(sums), 0);  // second
    STORED;
    WAIT(&done, 0);
    END(32);
}

// ---- what the tensor cores see -------------------------------------------------------------------

extern "C" __global__ void a_tile_is_not_fenced_for_the_tensor_cores(const __half* x, float* y)
{
    BEGIN;
    b[threadIdx.x] = x[threadIdx.x + 128];  // first
#ifdef MENDED
    WRITTEN;
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);  // second
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void the_asking_thread_fences_before_the_others_have_met(const __half* x, float* y)
{
    BEGIN;
    b[threadIdx.x] = x[threadIdx.x + 128];  // first
#ifdef MENDED
    __syncthreads();
#endif
    if (threadIdx.x == 0) WRITTEN;
    __syncthreads();
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);  // second
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

// ---- allocation ----------------------------------------------------------------------------------

extern "C" __global__ void columns_are_never_freed(const __half* x, float* y)
{
    __shared__ unsigned slot;
    if (threadIdx.x < 32) ALLOCATE(&slot, 32);  // here
    __syncthreads();
    y[threadIdx.x] = slot;
#ifdef MENDED
    __syncthreads();
    if (threadIdx.x < 32) FREE(slot, 32);
#endif
}

extern "C" __global__ void columns_are_freed_twice(const __half* x, float* y)
{
    __shared__ unsigned slot;
    if (threadIdx.x < 32) ALLOCATE(&slot, 32);
    __syncthreads();
    y[threadIdx.x] = slot;
#ifdef MENDED
    if (threadIdx.x < 32)
#else
    if (threadIdx.x < 64)
#endif
        FREE(slot, 32);  // here
}

extern "C" __global__ void fewer_columns_are_freed_than_were_allocated(const __half* x, float* y)
{
    __shared__ unsigned slot;
    if (threadIdx.x < 32) ALLOCATE(&slot, 128);
    __syncthreads();
    y[threadIdx.x] = slot;
#ifdef MENDED
    if (threadIdx.x < 32) FREE(slot, 128);
#else
    if (threadIdx.x < 32) FREE(slot, 64);  // here
#endif
}

extern "C" __global__ void as_many_columns_are_allocated_as_are_needed(const __half* x, float* y)
{
    __shared__ unsigned slot;
#ifdef MENDED
    unsigned columns = 64;
#else
    unsigned columns = 48;
#endif
    if (threadIdx.x < 32) ALLOCATE(&slot, columns);  // here
    __syncthreads();
    y[threadIdx.x] = slot;
    if (threadIdx.x < 32) FREE(slot, columns);
}

extern "C" __global__ void more_columns_are_allocated_than_there_are(const __half* x, float* y)
{
    __shared__ unsigned slot[2];
    if (threadIdx.x < 32) ALLOCATE(&slot[0], 256);
#ifdef MENDED
    unsigned columns = 256;
#else
    unsigned columns = 512;
#endif
    if (threadIdx.x < 32) ALLOCATE(&slot[1], columns);  // here
    __syncthreads();
    y[threadIdx.x] = slot[1];
    if (threadIdx.x < 32) {
        FREE(slot[0], 256);
        FREE(slot[1], columns);
    }
}

extern "C" __global__ void columns_are_allocated_when_the_permit_is_given_up(const __half* x, float* y)
{
    __shared__ unsigned slot;
    if (threadIdx.x < 32) {
#ifndef MENDED
        GIVE_UP;
#endif
        ALLOCATE(&slot, 32);  // here
#ifdef MENDED
        GIVE_UP;
#endif
    }
    __syncthreads();
    y[threadIdx.x] = slot;
    if (threadIdx.x < 32) FREE(slot, 32);
}

extern "C" __global__ void columns_are_freed_during_a_product(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
#ifdef MENDED
    END(32);
#else
    __syncthreads();
    if (threadIdx.x < 32) FREE(sums, 32);
    __syncthreads();
    LOAD(sum, own(sums));  // here
    LOADED;
    y[threadIdx.x] = __uint_as_float(sum);
#endif
}

// ---- which lanes, which columns ------------------------------------------------------------------

extern "C" __global__ void each_warp_loads_the_lanes_of_the_third(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&done);
    }
    WAIT(&done, 0);
#ifdef MENDED
    unsigned place = own(sums);
#else
    unsigned place = sums + (64 << 16);
#endif
    LOAD(sum, place);  // here
    LOADED;
    END(32);
}

extern "C" __global__ void a_sum_needs_more_columns_than_are_allocated(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
#ifdef MENDED
        unsigned place = sums + 24;
#else
        unsigned place = sums + 28;
#endif
        MULTIPLY(place, tile(a), tile(b), PLAIN, 0);  // here
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums + 24));
    LOADED;
    END(32);
}

extern "C" __global__ void lanes_of_a_warp_load_by_themselves(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&done);
    }
    WAIT(&done, 0);
#ifndef MENDED
    if (threadIdx.x % 32 < 16)
#endif
    {
        LOAD(sum, own(sums));  // here
        LOADED;
    }
    END(32);
}

// ---- descriptors ---------------------------------------------------------------------------------

extern "C" __global__ void a_descriptor_is_one_of_hopper(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
#ifdef MENDED
        u64 left = tile(a);
#else
        u64 left = tile(a, 128, 256, 0);
#endif
        MULTIPLY(sums, left, tile(b), PLAIN, 0);  // here
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void a_tile_reaches_beyond_shared_memory(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
#ifdef MENDED
        u64 left = tile(a);
#else
        u64 left = tile(a, 128, 1024);
#endif
        MULTIPLY(sums, left, tile(b), PLAIN, 0);  // here
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void a_product_has_rows_that_no_product_has(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
#ifdef MENDED
        unsigned what = PLAIN;
#else
        unsigned what = 2u << 24 | 1u << 17 | 1u << 4;
#endif
        MULTIPLY(sums, tile(a), tile(b), what, 0);  // here
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void sums_of_halves_are_asked_for_in_integers(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
#ifdef MENDED
        unsigned what = PLAIN;
#else
        unsigned what = 4u << 24 | 1u << 17 | 2u << 4;
#endif
        MULTIPLY(sums, tile(a), tile(b), what, 0);  // here
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

// ---- commits -------------------------------------------------------------------------------------

extern "C" __global__ void nobody_commits(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
#ifdef MENDED
        COMMIT(&done);
#endif
    }
    WAIT(&done, 0);  // here
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void a_commit_names_no_mbarrier(const __half* x, float* y)
{
    BEGIN;
    __shared__ u64 other;
    if (threadIdx.x == 0) {
        other = 0;
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
#ifdef MENDED
        COMMIT(&done);
#else
        COMMIT(&other);  // here
#endif
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void an_mbarrier_waits_for_every_thread_and_only_one_commits(const __half* x, float* y)
{
    BEGIN;
    __shared__ u64 all;
#ifdef MENDED
    if (threadIdx.x == 0) INIT(&all, 1);
#else
    if (threadIdx.x == 0) INIT(&all, 128);
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&all);
    }
    WAIT(&all, 0);  // here
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

// ---- pairs ---------------------------------------------------------------------------------------

#define FILL \
    __shared__ alignas(128) __half a[1024], b[128]; \
    __shared__ u64 done; \
    __shared__ unsigned slot; \
    for (int i = threadIdx.x; i < 1024; i += 128) a[i] = x[i]; \
    b[threadIdx.x] = x[threadIdx.x]; \
    if (threadIdx.x == 0) INIT(&done, 1); \
    if (threadIdx.x < 32) \
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(at(&slot)) : "memory"); \
    WRITTEN; \
    MEET; \
    unsigned sums = slot, rank, sum = 0; \
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank))
#define MEET asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
#define OF_TWO (8u << 24 | 2u << 17 | 1u << 4)  // 128 rows, 16 columns
#define MULTIPLY_TOGETHER(d, a, b) asm volatile( \
    "{ .reg .pred p; setp.ne.u32 p, 0, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }" \
    ::"r"(d), "l"(a), "l"(b), "r"(OF_TWO) : "memory")
#define COMMIT_TO(bar, mask) asm volatile( \
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" \
    ::"r"(at(bar)), "h"((unsigned short)(mask)) : "memory")
#define LEAVE \
    y[128 * blockIdx.x + threadIdx.x] = __uint_as_float(sum); \
    MEET; \
    if (threadIdx.x < 32) \
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 32;" ::"r"(sums) : "memory")

extern "C" __global__ void __cluster_dims__(2, 1, 1) the_second_block_of_a_pair_asks(const __half* x, float* y)
{
    FILL;
#ifdef MENDED
    unsigned asks = 0;
#else
    unsigned asks = 1;
#endif
    if (threadIdx.x == 0 && rank == asks) {
        MULTIPLY_TOGETHER(sums, tile(a), tile(b));  // here
        COMMIT_TO(&done, 3);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    LEAVE;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) a_commit_reaches_one_block_of_a_pair(const __half* x, float* y)
{
    FILL;
#ifdef MENDED
    unsigned all = 3;
#else
    unsigned all = 1;
#endif
    if (threadIdx.x == 0 && rank == 0) {
        MULTIPLY_TOGETHER(sums, tile(a), tile(b));
        COMMIT_TO(&done, all);
    }
    WAIT(&done, 0);  // here
    LOAD(sum, own(sums));
    LOADED;
    LEAVE;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) a_block_of_a_pair_does_not_wait(const __half* x, float* y)
{
    FILL;
    if (threadIdx.x == 0 && rank == 0) {
        MULTIPLY_TOGETHER(sums, tile(a), tile(b));  // first
        COMMIT_TO(&done, 3);
    }
    if (rank == 1) {
#ifdef MENDED
        WAIT(&done, 0);
#endif
        LOAD(sum, own(sums));  // second
        LOADED;
    }
    WAIT(&done, 0);
    LEAVE;
}

// ---- what looks wrong and is right ------------------------------------------------------------------

extern "C" __global__ void products_of_one_thread_need_no_wait_between_them(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; ++i)
            MULTIPLY(sums, tile(a), tile(b), PLAIN, i > 0);
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void another_sum_is_read_during_a_product(const __half* x, float* y)
{
    BEGIN;
    __shared__ u64 second;
    if (threadIdx.x == 0) INIT(&second, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&done);
        MULTIPLY(sums + 8, tile(a), tile(b), PLAIN, 0);
        COMMIT(&second);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    WAIT(&second, 0);
    END(32);
}

extern "C" __global__ void another_stage_is_filled_during_a_product(const __half* x, float* y)
{
    BEGIN;
    __shared__ alignas(128) __half next[128];
    for (int stage = 0; stage < 2; ++stage) {
        if (threadIdx.x == 0) {
            MULTIPLY(sums, tile(a), tile(stage ? next : b), PLAIN, stage);
            COMMIT(&done);
        }
        if (stage == 0) next[threadIdx.x] = x[threadIdx.x + 128];
        WRITTEN;
        WAIT(&done, stage);
        __syncthreads();
    }
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void one_thread_waits_for_the_product_and_the_block_meets(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&done);
        WAIT(&done, 0);
    }
    BEFORE;
    __syncthreads();
    AFTER;
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

extern "C" __global__ void two_loads_have_one_wait(const __half* x, float* y)
{
    BEGIN;
    if (threadIdx.x == 0) {
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&done);
    }
    WAIT(&done, 0);
    unsigned more;
    LOAD(sum, own(sums));
    LOAD(more, own(sums + 1));
    LOADED;
    sum = __float_as_uint(__uint_as_float(sum) + __uint_as_float(more));
    END(32);
}

// A thread copies tiles in, another asks for products, and a commit gives the tile back to the first.
extern "C" __global__ void a_commit_gives_a_tile_back(const __half* x, float* y)
{
    BEGIN;
    __shared__ u64 full, empty;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, 1);
    }
    __syncthreads();
    for (int k = 0; k < 4; ++k) {
        if (threadIdx.x == 0) {
            WAIT(&empty, k % 2 ^ 1);
            BRING(b, x + 128 * k, &full);
        }
        if (threadIdx.x == 32) {
            WAIT(&full, k % 2);
            MULTIPLY(sums, tile(a), tile(b), PLAIN, k);
            COMMIT(&empty);
        }
    }
    if (threadIdx.x == 32) COMMIT(&done);
    WAIT(&done, 0);
    __syncthreads();
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}

// What a thread wrote without a fence is gone when the tensor cores read: a copy has brought something else.
extern "C" __global__ void a_copy_replaces_what_no_fence_followed(const __half* x, float* y)
{
    BEGIN;
    __shared__ u64 full;
    if (threadIdx.x == 0) INIT(&full, 1);
    b[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        BRING(b, x + 128, &full);
        WAIT(&full, 0);
        MULTIPLY(sums, tile(a), tile(b), PLAIN, 0);
        COMMIT(&done);
    }
    WAIT(&done, 0);
    LOAD(sum, own(sums));
    LOADED;
    END(32);
}
