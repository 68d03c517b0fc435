// Chains of dependent operations, many operations in flight, short formats, branches that diverge.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define ALL 0xffffffffu

template <class T>
__device__ void chain(const T* x, T* y, T a, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T v = x[i];
    for (int k = 0; k < rounds; ++k)
        v = v * a + T(1);
    y[i] = v;
}

extern "C" __global__ void chain_f32(const float* x, float* y, float a, int rounds)
{
    chain(x, y, a, rounds);
}

extern "C" __global__ void chain_f64(const double* x, double* y, double a, int rounds)
{
    chain(x, y, a, rounds);
}

extern "C" __global__ void chain_i32(const int* x, int* y, int a, int rounds)
{
    chain(x, y, a, rounds);
}

extern "C" __global__ void chain_logic(const int* x, int* y, int a, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
    for (int k = 0; k < rounds; ++k)
        v = ((v << 3) ^ a) + (v & k);
    y[i] = v;
}

extern "C" __global__ void chain_exp(const float* x, float* y, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < rounds; ++k)
        v = exp2f(-v);
    y[i] = v;
}

extern "C" __global__ void chain_divide(const float* x, float* y, float a, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < rounds; ++k)
        v = a / (v + 1);
    y[i] = v;
}

extern "C" __global__ void chain_shuffle(const int* x, int* y, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
    for (int k = 0; k < rounds; ++k)
        v = __shfl_sync(ALL, v, (threadIdx.x + v) % 32);
    y[i] = v;
}

extern "C" __global__ void four_chains(const float* x, float* y, float a, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float p = x[i], q = p + 1, r = p + 2, s = p + 3;
    for (int k = 0; k < rounds; ++k) {
        p = p * a + 1;
        q = q * a + 1;
        r = r * a + 1;
        s = s * a + 1;
    }
    y[i] = p + q + r + s;
}

extern "C" __global__ void pairs_f16(const __half* x, __half* y, int rounds, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i >= n)
        return;
    __half2 v = reinterpret_cast<const __half2*>(x)[i], half = __float2half2_rn(0.5f);
    for (int k = 0; k < rounds; ++k)
        v = __hfma2(v, half, half);
    reinterpret_cast<__half2*>(y)[i] = v;
}

extern "C" __global__ void pairs_bf16(const unsigned short* x, unsigned short* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i >= n)
        return;
    float2 v = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(x)[i]);
    v.x = 2 * v.x + 1;
    v.y = 2 * v.y + 1;
    reinterpret_cast<__nv_bfloat162*>(y)[i] = __float22bfloat162_rn(v);
}

extern "C" __global__ void diverge(const float* x, float* y, int ways, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int way = 0; way < ways; ++way)
        if (threadIdx.x % ways == way)
            for (int k = 0; k < rounds; ++k)
                v = v * 0.5f + way;
    y[i] = v;
}

extern "C" __global__ void uneven(const int* lengths, int* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = 1;
    for (int k = 0; k < lengths[i]; ++k)
        v = v * 3 + k;
    y[i] = v;
}
