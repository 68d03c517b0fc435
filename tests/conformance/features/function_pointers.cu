// feature: pointers to functions of the device
__device__ int twice(int v) { return 2 * v; }
__device__ int square(int v) { return v * v; }
typedef int (*Operation)(int);
__device__ Operation table[2] = {twice, square};
__global__ void apply(int *a) { a[threadIdx.x] = table[threadIdx.x % 2](threadIdx.x); }
int main() {
    int *a;
    cudaMallocManaged(&a, 128);
    apply<<<1, 32>>>(a);
    return !(cudaDeviceSynchronize() == cudaSuccess && a[30] == 60 && a[31] == 961);
}
