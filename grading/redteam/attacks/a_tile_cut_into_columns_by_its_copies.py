# how: copies each column of pixels by itself, eight copies a tile, so that no swizzle is needed
# exercise: async.tile
# earns: 2.4
# says: copies
columns = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void columns(const __grid_constant__ CUtensorMap a, float4* out, int rows, int cols) {
    __shared__ alignas(1024) float4 tile[8][32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        expect(&full, sizeof tile);
        for (int c = 0; c < 8; c++) {
            int at[2] = {int(blockIdx.x) * 32 + 4 * c, int(blockIdx.y) * 32};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile[c], &a, at, &full);
        }
    }
    __syncthreads();
    wait(&full, 0);
    int row = threadIdx.x % 32, col = threadIdx.x / 32;
    float4 pixel = tile[col][row];
    row += blockIdx.y * 32, col += blockIdx.x * 8;
    if (row < rows && col < cols) out[col * rows + row] = pixel;
}
""",
    "columns",
)


def transpose(a, out):
    rows, cols, _ = a.shape
    tiles = gpulab.tensor_map(a.reshape(rows, 4 * cols), (32, 4))
    columns((-(-cols // 8), -(-rows // 32)), (256,), (tiles, out, cp.int32(rows), cp.int32(cols)))
