// Bank conflicts of every width, chains through shared memory, barriers, few and many resident blocks.

template <class T>
__device__ void crossed(float* y, int stride, int rounds)
{
    __shared__ T words[2048];
    int t = threadIdx.x;
    for (int i = t; i < 2048; i += blockDim.x)
        words[i] = T();
    __syncthreads();
    for (int k = 0; k < rounds; ++k) {
        T word = words[(t * stride + k) % 2048];
        *reinterpret_cast<float*>(&word) += 1;
        words[(t * stride + k) % 2048] = word;
        __syncthreads();
    }
    float sum = 0;
    for (int i = t; i < 2048; i += blockDim.x)
        sum += *reinterpret_cast<float*>(&words[i]);
    y[blockIdx.x * blockDim.x + t] = sum;
}

extern "C" __global__ void banks_4(float* y, int stride, int rounds)
{
    crossed<float>(y, stride, rounds);
}

extern "C" __global__ void banks_8(float* y, int stride, int rounds)
{
    crossed<float2>(y, stride, rounds);
}

extern "C" __global__ void banks_16(float* y, int stride, int rounds)
{
    crossed<float4>(y, stride, rounds);
}

extern "C" __global__ void shared_chase(const int* next, int* end, int steps)
{
    __shared__ int jumps[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        jumps[i] = next[i];
    __syncthreads();
    int at = threadIdx.x;
    for (int k = 0; k < steps; ++k)
        at = jumps[at];
    end[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

extern "C" __global__ void barriers(const float* x, float* y, int rounds)
{
    __shared__ float ring[2][256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    ring[0][t] = x[i];
    for (int k = 0; k < rounds; ++k) {
        __syncthreads();
        ring[(k + 1) % 2][t] = ring[k % 2][(t + 1) % 256];
    }
    y[i] = ring[rounds % 2][t];
}

extern "C" __global__ void resident(const float* x, float* y, int rounds, int n)
{
    extern __shared__ float room[];
    int t = threadIdx.x, step = gridDim.x * blockDim.x;
    room[t] = 0;
    for (int k = 0; k < rounds; ++k) {
        int i = blockIdx.x * blockDim.x + t + k * step;
        room[t] += i < n ? x[i] : 0;
    }
    y[blockIdx.x * blockDim.x + t] = room[t];
}
