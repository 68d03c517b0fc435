// feature: kernels that launch kernels
// nvcc: -rdc=true
__global__ void child(int *a) { atomicAdd(a, 1); }
__global__ void parent(int *a) { child<<<1, 32>>>(a); }
int main() {
    int *a;
    cudaMallocManaged(&a, 4);
    parent<<<1, 1>>>(a);
    return !(cudaDeviceSynchronize() == cudaSuccess && *a == 32);
}
