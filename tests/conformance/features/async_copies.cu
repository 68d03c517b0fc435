// feature: copies and barriers of libcu++ (cuda::barrier, memcpy_async)
#include <cuda/barrier>
#include <cooperative_groups.h>
__global__ void copy(const int *x, int *out) {
    __shared__ int tile[128];
    __shared__ cuda::barrier<cuda::thread_scope_block> ready;
    auto block = cooperative_groups::this_thread_block();
    if (threadIdx.x == 0) init(&ready, blockDim.x);
    block.sync();
    cuda::memcpy_async(block, tile, x, sizeof tile, ready);
    ready.arrive_and_wait();
    out[threadIdx.x] = tile[127 - threadIdx.x];
}
int main() {
    int *x, *out;
    cudaMallocManaged(&x, 512), cudaMallocManaged(&out, 512);
    for (int i = 0; i < 128; i++) x[i] = i;
    copy<<<1, 128>>>(x, out);
    cudaDeviceSynchronize();
    return !(out[0] == 127 && out[127] == 0);
}
