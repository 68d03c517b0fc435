// feature: textures
__global__ void read(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }
int main() {
    float *x, *out;
    cudaMallocManaged(&x, 128), cudaMallocManaged(&out, 128);
    for (int i = 0; i < 32; i++) x[i] = i;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear, resource.res.linear.devPtr = x;
    resource.res.linear.desc = cudaCreateChannelDesc<float>(), resource.res.linear.sizeInBytes = 128;
    cudaTextureDesc how = {};
    cudaTextureObject_t t = 0;
    if (cudaCreateTextureObject(&t, &resource, &how, nullptr) != cudaSuccess) return 1;
    read<<<1, 32>>>(t, out);
    return !(cudaDeviceSynchronize() == cudaSuccess && out[31] == 31);
}
