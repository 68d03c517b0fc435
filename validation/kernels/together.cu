// Reductions, scans, histograms, softmax, layer norm: threads that need each other's numbers.

#define ALL 0xffffffffu

extern "C" __global__ void sum_tree(const float* x, float* y)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    for (int reach = 128; reach > 0; reach /= 2) {
        __syncthreads();
        if (t < reach)
            s[t] += s[t + reach];
    }
    if (t == 0)
        y[blockIdx.x] = s[0];
}

extern "C" __global__ void sum_interleaved(const float* x, float* y)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    for (int step = 1; step < 256; step *= 2) {
        __syncthreads();
        int i = 2 * step * t;
        if (i < 256)
            s[i] += s[i + step];
    }
    if (t == 0)
        y[blockIdx.x] = s[0];
}

__device__ float sum_of_warp(float v)
{
    for (int reach = 16; reach > 0; reach /= 2)
        v += __shfl_xor_sync(ALL, v, reach);
    return v;
}

__device__ float sum_of_block(float v, float* of_warps)
{
    v = sum_of_warp(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 32] = v;
    __syncthreads();
    return sum_of_warp(threadIdx.x % 32 < blockDim.x / 32 ? of_warps[threadIdx.x % 32] : 0);
}

__device__ float most_of_block(float v, float* of_warps)
{
    for (int reach = 16; reach > 0; reach /= 2)
        v = fmaxf(v, __shfl_xor_sync(ALL, v, reach));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = of_warps[threadIdx.x % (blockDim.x / 32)];
    for (int reach = 16; reach > 0; reach /= 2)
        v = fmaxf(v, __shfl_xor_sync(ALL, v, reach));
    return v;
}

extern "C" __global__ void sum_shuffles(const float* x, float* y, int n)
{
    __shared__ float of_warps[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    sum = sum_of_block(sum, of_warps);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum;
}

extern "C" __global__ void sum_atomic(const int* x, int* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&y[i % 64], x[i]);
}

extern "C" __global__ void scan_block(const float* x, float* y)
{
    __shared__ float s[2][256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, now = 0;
    s[0][t] = x[i];
    for (int reach = 1; reach < 256; reach *= 2) {
        __syncthreads();
        s[1 - now][t] = s[now][t] + (t >= reach ? s[now][t - reach] : 0);
        now = 1 - now;
    }
    y[i] = s[now][t];
}

extern "C" __global__ void scan_shuffles(const float* x, float* y)
{
    __shared__ float before[8];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    float v = x[i];
    for (int reach = 1; reach < 32; reach *= 2) {
        float left = __shfl_up_sync(ALL, v, reach);
        if (t % 32 >= reach)
            v += left;
    }
    if (t % 32 == 31)
        before[t / 32] = v;
    __syncthreads();
    for (int warp = 0; warp < t / 32; ++warp)
        v += before[warp];
    y[i] = v;
}

extern "C" __global__ void histogram_global(const int* x, int* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&counts[x[i]], 1);
}

extern "C" __global__ void histogram_shared(const int* x, int* counts, int n)
{
    __shared__ int mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[x[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

extern "C" __global__ void softmax(const float* x, float* y, int columns)
{
    __shared__ float of_warps[32];
    const float* row = x + blockIdx.x * columns;
    float most = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        most = fmaxf(most, row[i]);
    most = most_of_block(most, of_warps);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += __expf(row[i] - most);
    sum = sum_of_block(sum, of_warps);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[blockIdx.x * columns + i] = __expf(row[i] - most) / sum;
}

extern "C" __global__ void layer_norm(const float* x, const float* scale, const float* shift, float* y, int columns)
{
    __shared__ float of_warps[32];
    const float* row = x + blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += row[i];
    float mean = sum_of_block(sum, of_warps) / columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        squares += (row[i] - mean) * (row[i] - mean);
    float factor = rsqrtf(sum_of_block(squares, of_warps) / columns + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[blockIdx.x * columns + i] = (row[i] - mean) * factor * scale[i] + shift[i];
}

extern "C" __global__ void softmax_of_warps(const float* x, float* y)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float v = x[row * 32 + lane], most = v;
    for (int reach = 16; reach > 0; reach /= 2)
        most = fmaxf(most, __shfl_xor_sync(ALL, most, reach));
    v = __expf(v - most);
    y[row * 32 + lane] = v / sum_of_warp(v);
}
