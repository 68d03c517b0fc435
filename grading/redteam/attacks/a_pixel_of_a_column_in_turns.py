# how: lets the lanes of a warp read their column one after the other, so that no two meet in a bank
# exercise: async.tile
# earns: 2.9
# says: bank conflicts
turning = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void turning(const __grid_constant__ CUtensorMap a, float4* out, int rows, int cols) {
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
    float4 pixel = make_float4(0, 0, 0, 0);
    for (int turn = 0; turn < 32; turn++) {
        if (row == turn) pixel = tile[row][col];
        __syncwarp();
    }
    row += blockIdx.y * 32, col += blockIdx.x * 8;
    if (row < rows && col < cols) out[col * rows + row] = pixel;
}
""",
    "turning",
)


def transpose(a, out):
    rows, cols, _ = a.shape
    tiles = gpulab.tensor_map(a.reshape(rows, 4 * cols), (32, 32))
    turning((-(-cols // 8), -(-rows // 32)), (256,), (tiles, out, cp.int32(rows), cp.int32(cols)))
