// feature: shared memory of dynamic size, shuffles, templates
#include <vector>
template <typename T> __global__ void sum(const T *x, T *out, int n) {
    extern __shared__ double warps[];
    T own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
    for (int d = 16; d; d /= 2) own += __shfl_down_sync(~0u, own, d);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / 32; w++) own += warps[w];
        atomicAdd(out, own);
    }
}
int main() {
    std::vector<float> x(1000, 2);
    float *dx, *out, total = 0;
    cudaMalloc(&dx, 4000), cudaMalloc(&out, 4), cudaMemset(out, 0, 4);
    cudaMemcpy(dx, x.data(), 4000, cudaMemcpyHostToDevice);
    sum<<<3, 128, 4 * sizeof(double)>>>(dx, out, 1000);
    cudaMemcpy(&total, out, 4, cudaMemcpyDeviceToHost);
    return total != 2000;
}
