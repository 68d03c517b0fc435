// feature: recursion in kernels
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void each(int *a) { a[threadIdx.x] = fib(threadIdx.x); }
int main() {
    int *a;
    cudaMallocManaged(&a, 40);
    each<<<1, 10>>>(a);
    return !(cudaDeviceSynchronize() == cudaSuccess && a[9] == 34);
}
