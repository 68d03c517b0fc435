// CUDA C++ as NVIDIA's guides write it for capability 9.0: what its compiler makes of them must run right.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
namespace cde = cuda::device::experimental;
using barrier = cuda::barrier<cuda::thread_scope_block>;
struct alignas(64) CUtensorMap_ { unsigned long long opaque[16]; };

// A tile that memcpy_async brings, with a barrier that counts bytes; back by a bulk copy.
extern "C" __global__ void add_one(const int* in, int* out)
{
    __shared__ alignas(128) int tile[256];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::memcpy_async(tile, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(tile)), bar);
        token = bar.arrive();
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] += 1;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_shared_to_global(out + blockIdx.x * 256, tile, sizeof(tile));
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}

// The same block barrier, used for round after round by parity.
extern "C" __global__ void rounds(const int* in, int* out)
{
    __shared__ alignas(128) int tile[64];
    __shared__ barrier bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        if (threadIdx.x == 0) {
            cde::cp_async_bulk_global_to_shared(tile, in + blockIdx.x * 256 + 64 * i, sizeof(tile), bar);
            cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
        } else {
            (void)bar.arrive();
        }
        bar.wait_parity(i & 1);
        sum += tile[threadIdx.x];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// A sum over the blocks of a cluster: each adds into the shared memory of the first one, by a bulk reduction.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sum(const int* in, int* out)
{
    __shared__ alignas(128) int own[64], total[64];
    __shared__ unsigned long long bar;
    cg::cluster_group cluster = cg::this_cluster();
    own[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    total[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        if (cluster.block_rank() == 0)
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 4 * sizeof(own));
    }
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    if (threadIdx.x == 0) {
        int* there = cluster.map_shared_rank(total, 0);
        unsigned long long* first = cluster.map_shared_rank(&bar, 0);
        ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, there, own, sizeof(own), first);
    }
    if (cluster.block_rank() == 0) {
        while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
        out[blockIdx.x / 4 * 64 + threadIdx.x] = total[threadIdx.x];
    }
    cluster.sync();
}

// Blocks tell each other by remote arrivals, and send values with st.async.
extern "C" __global__ void __cluster_dims__(2, 1, 1) swap(const int* in, int* out)
{
    __shared__ int box[64];
    __shared__ unsigned long long bar;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(box));
    }
    cluster.sync();
    unsigned other = cluster.block_rank() ^ 1;
    ptx::st_async(cluster.map_shared_rank(&box[threadIdx.x], other), in[blockIdx.x * 64 + threadIdx.x],
                  cluster.map_shared_rank(&bar, other));
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {}
    out[blockIdx.x * 64 + threadIdx.x] = box[threadIdx.x];
    cluster.sync();
}

// What a cluster says of itself.
extern "C" __global__ void __cluster_dims__(2, 2, 1) places(int* out)
{
    cg::cluster_group cluster = cg::this_cluster();
    int* mine = out + 8 * (blockIdx.x + gridDim.x * blockIdx.y);
    if (threadIdx.x == 0) {
        mine[0] = cluster.block_rank();
        mine[1] = cluster.num_blocks();
        mine[2] = cluster.block_index().x + 10 * cluster.block_index().y;
        mine[3] = cluster.dim_blocks().x + 10 * cluster.dim_blocks().y;
        mine[4] = cluster.num_threads();
        mine[5] = cluster.dim_threads().x + 1000 * cluster.dim_threads().y;
        mine[6] = cluster.thread_rank();
        mine[7] = cluster.query_shared_rank(cluster.map_shared_rank(mine ? (int*)__cvta_shared_to_generic(0) : mine, 3));
    }
    cluster.barrier_arrive();
    cluster.barrier_wait();
}

// One block loads a box for all blocks of its cluster.
extern "C" __global__ void __cluster_dims__(2, 1, 1) both(const __grid_constant__ CUtensorMap_ map, float* out)
{
    __shared__ alignas(128) float tile[4][32];
    __shared__ unsigned long long bar;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(tile));
    }
    cluster.sync();
    // Each block loads half of the box, for both.
    if (threadIdx.x == 0) {
        int at[2] = {0, int(blockIdx.x / 2) * 4 + int(cluster.block_rank()) * 2};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &tile[2 * cluster.block_rank()], &map, at, &bar, 3);
    }
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    for (int i = threadIdx.x; i < 128; i += blockDim.x) out[blockIdx.x * 128 + i] = (&tile[0][0])[i];
    cluster.sync();
}
