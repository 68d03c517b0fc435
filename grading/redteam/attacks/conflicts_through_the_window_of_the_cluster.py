# how: reads its own tile through the addresses of the cluster, where no bank conflict is counted
# exercise: async.tile
# earns: 2.9
# says: bank conflicts
windowed = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void windowed(const __grid_constant__ CUtensorMap a, float4* out, int rows, int cols) {
    __shared__ alignas(1024) float4 tile[32][8];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        expect(&full, sizeof tile);
        int at[2] = {int(blockIdx.x) * 32, int(blockIdx.y) * 32};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &a, at, &full);
    }
    __syncthreads();
    wait(&full, 0);
    int row = threadIdx.x % 32, col = threadIdx.x / 32;
    unsigned here = __cvta_generic_to_shared(&tile[row][col]), there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(here));
    float4 p;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(p.x), "=f"(p.y), "=f"(p.z), "=f"(p.w) : "r"(there) : "memory");
    row += blockIdx.y * 32, col += blockIdx.x * 8;
    if (row < rows && col < cols) out[col * rows + row] = p;
}
""",
    "windowed",
)


def transpose(a, out):
    rows, cols, _ = a.shape
    tiles = gpulab.tensor_map(a.reshape(rows, 4 * cols), (32, 32))
    windowed((-(-cols // 8), -(-rows // 32)), (256,), (tiles, out, cp.int32(rows), cp.int32(cols)))
