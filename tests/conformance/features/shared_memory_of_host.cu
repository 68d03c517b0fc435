// feature: managed, pinned, mapped and registered memory
#include <cstdlib>
__managed__ int counter;
__global__ void bump(int *a) { a[threadIdx.x]++, atomicAdd(&counter, 1); }
int main() {
    int *managed, *pinned, *mapped, *own = (int *)calloc(64, 4);
    cudaMallocManaged(&managed, 128), cudaMallocHost(&pinned, 128);
    cudaHostRegister(own, 256, cudaHostRegisterMapped);
    cudaHostGetDevicePointer((void **)&mapped, own, 0);
    managed[31] = 1, pinned[31] = 2;
    bump<<<1, 32>>>(managed), bump<<<1, 32>>>(pinned), bump<<<1, 64>>>(mapped);
    cudaDeviceSynchronize();
    return !(managed[31] == 2 && pinned[31] == 3 && own[63] == 1 && counter == 128);
}
