// Bulk copies, mbarriers and clusters, for a GPU of capability 9.0. With MENDED they are right.
#include <cooperative_groups.h>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using u64 = unsigned long long;

__device__ void begin(u64* bar, int arrivals)
{
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(bar, arrivals);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
}

__device__ void expect(u64* bar, int bytes)
{
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, bytes);
}

__device__ void arrive(u64* bar)
{
    ptx::mbarrier_arrive(bar);
}

#define is_over(bar, parity) ptx::mbarrier_try_wait_parity(bar, parity)
#define load(to, from, bytes, bar) ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, to, from, bytes, bar)
#define store(to, from, bytes) ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to, from, bytes)

extern "C" __global__ void one_warp_waits_for_a_bulk_copy(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    begin(&full, 1);
    if (threadIdx.x == 0) {
        expect(&full, 256);
        load(tile, x, 256, &full);  // first
    }
#ifndef MENDED
    if (threadIdx.x < 32)
#endif
        while (!is_over(&full, 0)) {}
    y[threadIdx.x] = tile[63 - threadIdx.x];  // second
}

extern "C" __global__ void a_barrier_of_the_block_is_taken_for_a_wait(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    begin(&full, 1);
    if (threadIdx.x == 0) {
        expect(&full, 256);
        load(tile, x, 256, &full);  // first
    }
    __syncthreads();
#ifdef MENDED
    while (!is_over(&full, 0)) {}
#endif
    y[threadIdx.x] = tile[threadIdx.x];  // second
}

extern "C" __global__ void a_parity_is_one_round_ahead(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    begin(&full, 1);
    if (threadIdx.x == 0) {
        expect(&full, 256);
        load(tile, x, 256, &full);  // first
    }
#ifdef MENDED
    while (!is_over(&full, 0)) {}
#else
    while (!is_over(&full, 1)) {}
#endif
    y[threadIdx.x] = tile[threadIdx.x];  // second
}

extern "C" __global__ void too_few_bytes_are_announced(const float* x, float* y)
{
    __shared__ alignas(128) float tile[128];
    __shared__ u64 full;
    begin(&full, 1);
    if (threadIdx.x == 0) {
#ifdef MENDED
        expect(&full, 512);
#else
        expect(&full, 256);
#endif
        load(tile, x, 256, &full);
        load(tile + 64, x + 64, 256, &full);  // first
    }
    while (!is_over(&full, 0)) {}  // second
    y[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void too_many_bytes_are_announced(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    begin(&full, 1);
    if (threadIdx.x == 0) {
#ifdef MENDED
        expect(&full, 256);
#else
        expect(&full, 272);
#endif
        load(tile, x, 256, &full);
    }
    while (!is_over(&full, 0)) {}  // here
    y[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void a_stage_is_filled_while_others_read_it(const float* x, float* y, int n)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    begin(&full, 1);
    float sum = 0;
    for (int i = 0; i < n; i++) {
        if (threadIdx.x == 0) {
            expect(&full, 256);
            load(tile, x + 64 * i, 256, &full);  // second
        }
        while (!is_over(&full, i & 1)) {}
        sum += tile[63 - threadIdx.x];  // first
#ifdef MENDED
        __syncthreads();
#endif
    }
    y[threadIdx.x] = sum;
}

extern "C" __global__ void a_bulk_store_lacks_a_proxy_fence(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = x[threadIdx.x] * 2;  // first
#ifdef MENDED
    ptx::fence_proxy_async(ptx::space_shared);
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        store(y, tile, 256);  // second
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
}

extern "C" __global__ void one_thread_fences_for_all_before_they_meet(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = x[threadIdx.x] * 2;  // first
#ifdef MENDED
    __syncthreads();
#endif
    if (threadIdx.x == 0) ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        store(y, tile, 256);  // second
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
}

extern "C" __global__ void a_source_changes_before_it_is_read(const float* x, float* y, int n)
{
    __shared__ alignas(128) float tile[64];
    for (int i = 0; i < n; i++) {
        tile[threadIdx.x] = x[64 * i + threadIdx.x] * 2;  // second
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            store(y + 64 * i, tile, 256);  // first
            ptx::cp_async_bulk_commit_group();
#ifdef MENDED
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
#endif
        }
        __syncthreads();
    }
}

extern "C" __global__ void a_block_returns_before_its_copy_was_read(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = x[threadIdx.x] * 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        store(y, tile, 256);  // here
        ptx::cp_async_bulk_commit_group();
#ifdef MENDED
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
#endif
    }
}

extern "C" __global__ void a_bulk_copy_has_an_odd_size(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    begin(&full, 1);
#ifdef MENDED
    int bytes = 256;
#else
    int bytes = 252;
#endif
    if (threadIdx.x == 0) {
        expect(&full, bytes);
        load(tile, x, bytes, &full);  // here
    }
    while (!is_over(&full, 0)) {}
    y[threadIdx.x] = threadIdx.x < 63 ? tile[threadIdx.x] : 0;
}

extern "C" __global__ void a_bulk_copy_goes_to_an_odd_place(const float* x, float* y)
{
#ifdef MENDED
    __shared__ alignas(16) float tile[68];
    float* to = tile + 4;
#else
    __shared__ alignas(16) float tile[68];
    float* to = tile + 1;
#endif
    __shared__ u64 full;
    begin(&full, 1);
    if (threadIdx.x == 0) {
        expect(&full, 256);
        load(to, x, 256, &full);  // here
    }
    while (!is_over(&full, 0)) {}
    y[threadIdx.x] = to[threadIdx.x];
}

extern "C" __global__ void a_copy_names_no_mbarrier(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full[2];
    begin(&full[0], 1);
#ifdef MENDED
    u64* bar = &full[0];
#else
    u64* bar = &full[1];
#endif
    if (threadIdx.x == 0) {
        load(tile, x, 256, bar);  // here
        expect(&full[0], 256);
    }
    while (!is_over(&full[0], 0)) {}
    y[threadIdx.x] = tile[threadIdx.x];
}

// ---- mbarriers and roles -------------------------------------------------------------------------

extern "C" __global__ void every_thread_announces_the_bytes(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
#ifdef MENDED
    begin(&full, 1);
    if (threadIdx.x == 0) expect(&full, 256);
#else
    begin(&full, 64);
    expect(&full, 256);
#endif
    if (threadIdx.x == 0) load(tile, x, 256, &full);
    while (!is_over(&full, 0)) {}  // here
    y[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void an_mbarrier_counts_threads_that_never_arrive(const float* x, float* y)
{
    __shared__ float tile[64];
    __shared__ u64 ready;
#ifdef MENDED
    begin(&ready, 32);
#else
    begin(&ready, 64);
#endif
    if (threadIdx.x < 32) {
        tile[threadIdx.x] = x[threadIdx.x];
        arrive(&ready);
    }
    while (!is_over(&ready, 0)) {}  // here
    y[threadIdx.x] = tile[threadIdx.x % 32];
}

extern "C" __global__ void one_warp_arrives_for_two_that_write(const float* x, float* y)
{
    __shared__ float tile[64];
    __shared__ u64 ready;
    begin(&ready, 32);
    tile[threadIdx.x] = x[threadIdx.x];  // first
#ifdef MENDED
    __syncthreads();
#endif
    if (threadIdx.x < 32) arrive(&ready);
    while (!is_over(&ready, 0)) {}
    y[threadIdx.x] = tile[63 - threadIdx.x];  // second
}

extern "C" __global__ void a_consumer_never_gives_a_stage_back(const float* x, float* y, int n)
{
    __shared__ alignas(128) float tile[32];
    __shared__ u64 full, empty;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&empty, 32);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        for (int i = 0; i < n; i++) {
            while (!is_over(&empty, (i & 1) ^ 1)) {}  // here
            expect(&full, 128);
            load(tile, x + 32 * i, 128, &full);
        }
    } else if (threadIdx.x < 32) {
        float sum = 0;
        for (int i = 0; i < n; i++) {
            while (!is_over(&full, i & 1)) {}
            sum += tile[31 - threadIdx.x];
#ifdef MENDED
            arrive(&empty);
#endif
        }
        y[threadIdx.x] = sum;
    }
}

extern "C" __global__ void a_producer_begins_with_the_parity_of_a_consumer(const float* x, float* y, int n)
{
    __shared__ alignas(128) float tile[32];
    __shared__ u64 full, empty;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&empty, 32);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
#ifdef MENDED
    int parity = 1;
#else
    int parity = 0;
#endif
    if (threadIdx.x == 32) {
        for (int i = 0; i < n; i++) {
            while (!is_over(&empty, (i & 1) ^ parity)) {}  // here
            expect(&full, 128);
            load(tile, x + 32 * i, 128, &full);
        }
    } else if (threadIdx.x < 32) {
        float sum = 0;
        for (int i = 0; i < n; i++) {
            while (!is_over(&full, i & 1)) {}
            sum += tile[31 - threadIdx.x];
            arrive(&empty);
        }
        y[threadIdx.x] = sum;
    }
}

extern "C" __global__ void a_stage_is_given_back_before_it_is_read(const float* x, float* y, int n)
{
    __shared__ alignas(128) float tile[32];
    __shared__ u64 full, empty;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&empty, 32);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        for (int i = 0; i < n; i++) {
            while (!is_over(&empty, (i & 1) ^ 1)) {}
            expect(&full, 128);
            load(tile, x + 32 * i, 128, &full);  // first
        }
    } else if (threadIdx.x < 32) {
        float sum = 0;
        for (int i = 0; i < n; i++) {
            while (!is_over(&full, i & 1)) {}
#ifndef MENDED
            arrive(&empty);
#endif
            sum += tile[31 - threadIdx.x];  // second
#ifdef MENDED
            arrive(&empty);
#endif
        }
        y[threadIdx.x] = sum;
    }
}

extern "C" __global__ void a_store_is_not_committed_before_the_wait(const float* x, float* y, int n)
{
    __shared__ alignas(128) float tile[64];
    for (int i = 0; i < n; i++) {
        tile[threadIdx.x] = x[64 * i + threadIdx.x] * 2;  // second
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            store(y + 64 * i, tile, 256);  // first
#ifdef MENDED
            ptx::cp_async_bulk_commit_group();
#endif
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
        }
        __syncthreads();
    }
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
}

extern "C" __global__ void a_wait_leaves_the_last_copy_on_its_way(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = x[threadIdx.x] * 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        store(y, tile, 256);  // here
        ptx::cp_async_bulk_commit_group();
#ifdef MENDED
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
#else
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>{});
#endif
    }
}

extern "C" __global__ void another_thread_waits_for_the_store(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = x[threadIdx.x] * 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        store(y, tile, 256);  // here
        ptx::cp_async_bulk_commit_group();
    }
#ifdef MENDED
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
#else
    if (threadIdx.x == 1) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
#endif
}

// ---- clusters ------------------------------------------------------------------------------------

extern "C" __global__ void __cluster_dims__(2, 1, 1) a_value_is_left_with_a_neighbour_that_does_not_wait(float* y)
{
    __shared__ float box[64];
    cg::cluster_group cluster = cg::this_cluster();
    cluster.sync();
    *cluster.map_shared_rank(box + threadIdx.x, cluster.block_rank() ^ 1) = threadIdx.x;  // first
#ifdef MENDED
    cluster.sync();
#else
    __syncthreads();
#endif
    y[64 * blockIdx.x + threadIdx.x] = box[threadIdx.x];  // second
    cluster.sync();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) a_copy_is_sent_to_more_blocks_than_there_are(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    cg::cluster_group cluster = cg::this_cluster();
    begin(&full, 1);
    if (threadIdx.x == 0) expect(&full, 256);
    cluster.sync();
#ifdef MENDED
    unsigned short blocks = 3;
#else
    unsigned short blocks = 7;
#endif
    if (threadIdx.x == 0 && cluster.block_rank() == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, x, 256, &full, blocks);  // here
    while (!is_over(&full, 0)) {}
    y[64 * blockIdx.x + threadIdx.x] = tile[threadIdx.x];
    cluster.sync();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) a_copy_reaches_one_block_and_two_wait(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    cg::cluster_group cluster = cg::this_cluster();
    begin(&full, 1);
    if (threadIdx.x == 0) expect(&full, 256);
    cluster.sync();
#ifdef MENDED
    unsigned short blocks = 3;
#else
    unsigned short blocks = 1;
#endif
    if (threadIdx.x == 0 && cluster.block_rank() == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, x, 256, &full, blocks);
    while (!is_over(&full, 0)) {}  // here
    y[64 * blockIdx.x + threadIdx.x] = tile[threadIdx.x];
    cluster.sync();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) a_neighbour_is_read_before_the_cluster_meets(float* y)
{
    __shared__ float own[64];
    cg::cluster_group cluster = cg::this_cluster();
    own[threadIdx.x] = 64 * cluster.block_rank() + threadIdx.x;  // first
#ifdef MENDED
    cluster.sync();
#else
    __syncthreads();
#endif
    float* other = cluster.map_shared_rank(own, cluster.block_rank() ^ 1);
    y[64 * blockIdx.x + threadIdx.x] = other[threadIdx.x];  // second
    cluster.sync();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) a_neighbour_has_left(float* y)
{
    __shared__ float own[64];
    cg::cluster_group cluster = cg::this_cluster();
    own[threadIdx.x] = threadIdx.x;
    cluster.sync();
    if (cluster.block_rank() == 0) {
        float* other = cluster.map_shared_rank(own, 1);
        float sum = 0;
        for (int i = 0; i < 64; i++) sum += other[i];  // here
        y[threadIdx.x] = sum;
    }
#ifdef MENDED
    cluster.sync();
#endif
}

// In lockstep all blocks read at once, and none has left.
extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbours_leave_when_they_have_read(float* y)
{
    __shared__ float own[64];
    cg::cluster_group cluster = cg::this_cluster();
    own[threadIdx.x] = threadIdx.x;
    cluster.sync();
    y[64 * blockIdx.x + threadIdx.x] = *cluster.map_shared_rank(own + threadIdx.x, cluster.block_rank() ^ 1);  // here
#ifdef MENDED
    cluster.sync();
#endif
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) a_rank_is_too_large(float* y)
{
    __shared__ float own[64];
    cg::cluster_group cluster = cg::this_cluster();
    own[threadIdx.x] = threadIdx.x;
    cluster.sync();
#ifdef MENDED
    int next = (cluster.block_rank() + 1) % 2;
#else
    int next = cluster.block_rank() + 1;
#endif
    unsigned place;
    unsigned here = __cvta_generic_to_shared(own + threadIdx.x);
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(place) : "r"(here), "r"(next));
    float value;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(place));  // here
    y[64 * blockIdx.x + threadIdx.x] = value;
    cluster.sync();
}

// ---- right as they are ---------------------------------------------------------------------------

extern "C" __global__ void one_thread_waits_and_the_block_meets(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    begin(&full, 1);
    if (threadIdx.x == 0) {
        expect(&full, 256);
        load(tile, x, 256, &full);
        while (!is_over(&full, 0)) {}
    }
    __syncthreads();
    y[threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void the_sender_fences_after_all_have_met(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = x[threadIdx.x] * 2;
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::fence_proxy_async(ptx::space_shared);
        store(y, tile, 256);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
}

extern "C" __global__ void a_ring_of_stages_with_two_roles(const float* x, float* y, int n)
{
    __shared__ alignas(128) float tile[2][32];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) {
            ptx::mbarrier_init(&full[s], 1);
            ptx::mbarrier_init(&empty[s], 32);
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        for (int i = 0; i < n; i++) {
            int s = i % 2;
            while (!is_over(&empty[s], (i / 2 & 1) ^ 1)) {}
            expect(&full[s], 128);
            load(tile[s], x + 32 * i, 128, &full[s]);
        }
    } else if (threadIdx.x < 32) {
        float sum = 0;
        for (int i = 0; i < n; i++) {
            int s = i % 2;
            while (!is_over(&full[s], i / 2 & 1)) {}
            sum += tile[s][31 - threadIdx.x];
            arrive(&empty[s]);
        }
        y[threadIdx.x] = sum;
    }
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) sums_go_around_a_cluster(float* y)
{
    __shared__ float box[2];
    cg::cluster_group cluster = cg::this_cluster();
    int rank = cluster.block_rank();
    if (threadIdx.x == 0) box[0] = rank + 1;
    for (int i = 0; i < 3; i++) {
        cluster.sync();
        float* before = cluster.map_shared_rank(box, (rank + 3) % 4);
        if (threadIdx.x == 0) box[(i + 1) % 2] = before[i % 2] + rank + 1;
    }
    __syncthreads();
    y[64 * blockIdx.x + threadIdx.x] = box[1];
    cluster.sync();
}

extern "C" __global__ void two_copies_complete_at_one_mbarrier(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    begin(&full, 1);
    if (threadIdx.x == 0) {
        load(tile, x, 128, &full);
        load(tile + 32, x + 32, 128, &full);
        expect(&full, 256);
    }
    while (!is_over(&full, 0)) {}
    y[threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void two_stores_share_a_wait(const float* x, float* y)
{
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = x[threadIdx.x] * 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        store(y, tile, 128);
        ptx::cp_async_bulk_commit_group();
        store(y + 32, tile + 32, 128);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
}
