// feature: cooperative groups, and a wait of the whole grid
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void twice(int *a, int *out) {
    auto grid = cg::this_grid();
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    a[grid.thread_rank()] = 1;
    grid.sync();
    int s = cg::reduce(tile, a[grid.size() - 1 - grid.thread_rank()], cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(out, s);
}
int main() {
    int *a, *out, host = 0;
    cudaMalloc(&a, 512), cudaMalloc(&out, 4), cudaMemset(out, 0, 4);
    void *arguments[] = {&a, &out};
    cudaLaunchCooperativeKernel((void *)twice, dim3(4), dim3(32), arguments);
    cudaMemcpy(&host, out, 4, cudaMemcpyDeviceToHost);
    return host != 128;
}
