// feature: device code of several files, linked: functions, variables, templates (-rdc=true)
// nvcc: -rdc=true parts/linked.cu
#include "parts/linked.cuh"

static __device__ int offset = 3;

__global__ void here(float *a) {
    int i = threadIdx.x;
    a[i] = twice(a[i] + offset) + operations[i & 1](1);
    atomicAdd(&counter, 1);
}

int main() {
    float *a;
    cudaMallocManaged(&a, 64 * sizeof(float));
    for (int i = 0; i < 64; i++)
        a[i] = i;
    here<<<1, 64>>>(a);
    there<<<1, 64>>>(a);
    reverse<<<1, 64, 64 * sizeof(float)>>>(a, 64);
    int counted;
    cudaMemcpyFromSymbol(&counted, counter, sizeof counted);
    if (cudaDeviceSynchronize() != cudaSuccess || counted != 164)
        return 1;
    for (int i = 0; i < 64; i++) {
        int from = 63 - i;
        if (a[i] != 2 * (from + 3) + (from & 1 ? 101 : 2) + 7)
            return 2;
    }
    return 0;
}
