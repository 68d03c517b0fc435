# how: blocks of 32 × 8 threads, a kernel that is made by a helper, and a host function with type hints
# exercise: async.tile
def kernel(name: str, body: str) -> "cp.RawKernel":
    start = f'extern "C" __global__ void {name}(const __grid_constant__ CUtensorMap a, float4* out, int rows, int cols)'
    return cp.RawKernel(f"{HEAD}\n{start} {{{body}}}", name)


turning = kernel(
    "turning",
    """
    __shared__ alignas(1024) float4 tile[32 * 8];
    __shared__ unsigned long long full;
    unsigned r = threadIdx.x, c = threadIdx.y, row = blockIdx.x * 32 + r, col = blockIdx.y * 8 + c;
    if (r + c == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        expect(&full, sizeof(tile));
        int at[] = {int(blockIdx.y) * 32, int(blockIdx.x) * 32};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &a, at, &full);
    }
    __syncthreads();
    wait(&full, 0);
    if (row >= rows || col >= cols) return;
    out[col * rows + row] = tile[r * 8 + (c ^ (r & 7))];
    """,
)


def transpose(a, out) -> None:
    rows, cols = a.shape[:2]
    grid = tuple(-(-size // step) for size, step in ((rows, 32), (cols, 8)))
    image = gpulab.tensor_map(a.reshape(rows, -1), box=(32, 32), swizzle=128)
    turning(grid, (32, 8), (image, out, *map(cp.int32, (rows, cols))))
