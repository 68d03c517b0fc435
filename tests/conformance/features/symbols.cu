// feature: __constant__ and __device__ variables
__constant__ float factors[4];
__device__ int hits[2] = {10, 20};
__global__ void scale(float *x) { x[threadIdx.x] *= factors[threadIdx.x % 4], atomicAdd(&hits[1], 1); }
int main() {
    float f[4] = {1, 2, 3, 4}, host[8], *x;
    int h[2];
    void *where;
    for (auto &v : host) v = 1;
    cudaMalloc(&x, sizeof host), cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(factors, f, sizeof f);
    scale<<<1, 8>>>(x);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost), cudaMemcpyFromSymbol(h, hits, sizeof h);
    cudaGetSymbolAddress(&where, hits);
    return !(host[7] == 4 && h[0] == 10 && h[1] == 28 && where);
}
