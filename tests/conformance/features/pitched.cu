// feature: pitched memory and two-dimensional copies
__global__ void mark(char *a, size_t pitch) { *(int *)(a + threadIdx.y * pitch + 4 * threadIdx.x) = threadIdx.y; }
int main() {
    char *a;
    size_t pitch;
    int host[5][7];
    cudaMallocPitch(&a, &pitch, 7 * 4, 5);
    mark<<<1, dim3(7, 5)>>>(a, pitch);
    cudaMemcpy2D(host, 28, a, pitch, 28, 5, cudaMemcpyDeviceToHost);
    return !(host[4][6] == 4 && host[1][0] == 1);
}
