// Streams, strides, gathers, transposes, stencils, and a chain of loads.

extern "C" __global__ void copy(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}

extern "C" __global__ void saxpy(const float* x, float* y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void triad(const double* x, const double* y, double* z, double a, int n)
{
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        z[i] = x[i] + a * y[i];
}

extern "C" __global__ void bytes(const unsigned char* x, unsigned char* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] ^ 0x5a;
}

extern "C" __global__ void fours(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i < n)
        reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
}

extern "C" __global__ void strided(const float* x, float* y, int stride, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i * stride];
}

extern "C" __global__ void shifted(const float* x, float* y, int by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i + by];
}

extern "C" __global__ void gather(const float* x, const int* from, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[from[i]];
}

extern "C" __global__ void scatter(const float* x, const int* to, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[to[i]] = x[i];
}

extern "C" __global__ void transpose_naive(const float* a, float* b, int n)
{
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int row = blockIdx.y * 32 + threadIdx.y; row < blockIdx.y * 32 + 32; row += 8)
        b[column * n + row] = a[row * n + column];
}

template <int PITCH>
__device__ void through_shared(const float* a, float* b, int n, float (*tile)[PITCH])
{
    int x = threadIdx.x, y = threadIdx.y;
    int left = blockIdx.x * 32, top = blockIdx.y * 32;
    for (int row = y; row < 32; row += 8)
        tile[row][x] = a[(top + row) * n + left + x];
    __syncthreads();
    for (int row = y; row < 32; row += 8)
        b[(left + row) * n + top + x] = tile[x][row];
}

extern "C" __global__ void transpose_tiled(const float* a, float* b, int n)
{
    __shared__ float tile[32][32];
    through_shared(a, b, n, tile);
}

extern "C" __global__ void transpose_padded(const float* a, float* b, int n)
{
    __shared__ float tile[32][33];
    through_shared(a, b, n, tile);
}

extern "C" __global__ void stencil_line(const float* x, float* y, int n)
{
    __shared__ float near[256 + 8];
    int i = blockIdx.x * 256 + threadIdx.x, t = threadIdx.x;
    near[t + 4] = i < n ? x[i] : 0;
    if (t < 4) {
        near[t] = i >= 4 ? x[i - 4] : 0;
        near[t + 260] = i + 256 < n ? x[i + 256] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k <= 8; ++k)
        sum += near[t + k];
    if (i < n)
        y[i] = sum;
}

extern "C" __global__ void stencil_plane(const float* a, float* b, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x > 0 && x < n - 1 && y > 0 && y < n - 1) {
        int i = y * n + x;
        b[i] = 0.25f * (a[i - 1] + a[i + 1] + a[i - n] + a[i + n]);
    }
}

extern "C" __global__ void chase(const int* next, int* end, int steps)
{
    int at = threadIdx.x;
    for (int k = 0; k < steps; ++k)
        at = next[at];
    end[threadIdx.x] = at;
}
