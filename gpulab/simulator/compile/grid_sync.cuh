// What numba's grid groups call, cuda.cg.this_grid().sync(); on a GPU it comes with the CUDA runtime.
//
// Every block adds to one counter, block 0 so much more that all of them together flip its highest bit. So the
// counter needs no reset, and the next sync, even of a grid of another size, starts from where it stands.

__device__ unsigned int gpulab_grid_arrivals;

extern "C" __device__ unsigned long long cudaCGGetIntrinsicHandle(enum cudaCGScope scope) { return scope; }

extern "C" __device__ cudaError_t cudaCGSynchronize(unsigned long long handle, unsigned int flags)
{
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        const unsigned int flip = 0x80000000u, blocks = gridDim.x * gridDim.y * gridDim.z;
        const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
        __threadfence();
        const unsigned int before = atomicAdd(&gpulab_grid_arrivals, first ? flip - (blocks - 1) : 1u);
        while (((before ^ *(volatile unsigned int *)&gpulab_grid_arrivals) & flip) == 0)
            ;
        __threadfence();
    }
    __syncthreads();
    return cudaSuccess;
}
