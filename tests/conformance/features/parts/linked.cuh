#pragma once

typedef float (*operation)(float);
extern __device__ int counter;
extern __device__ operation operations[2];
__device__ float twice(float x);
__global__ void there(float *a);

template <typename T> __global__ void reverse(T *a, int n) {
    extern __shared__ float kept[];
    kept[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = kept[n - 1 - threadIdx.x];
}
