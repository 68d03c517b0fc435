// Matrix products, from one thread per element to the tensor cores, and attention.

#include <cuda_fp16.h>
#include <mma.h>

#define ALL 0xffffffffu

extern "C" __global__ void matmul_naive(const float* a, const float* b, float* c, int n)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; ++k)
        sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}

template <class T>
__device__ void tiled(const T* a, const T* b, T* c, int n)
{
    __shared__ T left[16][16], right[16][16];
    int i = threadIdx.x, j = threadIdx.y, x = blockIdx.x * 16 + i, y = blockIdx.y * 16 + j;
    T sum = 0;
    for (int start = 0; start < n; start += 16) {
        left[j][i] = a[y * n + start + i];
        right[j][i] = b[(start + j) * n + x];
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            sum += left[j][k] * right[k][i];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

extern "C" __global__ void matmul_tiled(const float* a, const float* b, float* c, int n)
{
    tiled(a, b, c, n);
}

extern "C" __global__ void matmul_tiled_f64(const double* a, const double* b, double* c, int n)
{
    tiled(a, b, c, n);
}

// 256 threads make a tile of 64 × 64, each thread 4 × 4 elements of it.
extern "C" __global__ void matmul_registers(const float* a, const float* b, float* c, int n)
{
    __shared__ float left[16][64], right[16][64];
    int t = threadIdx.x, i = t % 16, j = t / 16;
    int down = blockIdx.y * 64, across = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int start = 0; start < n; start += 16) {
        for (int k = t; k < 1024; k += 256) {
            left[k % 16][k / 16] = a[(down + k / 16) * n + start + k % 16];
            right[k / 64][k % 64] = b[(start + k / 64) * n + across + k % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            for (int y = 0; y < 4; ++y)
                for (int x = 0; x < 4; ++x)
                    sums[y][x] += left[k][4 * j + y] * right[k][4 * i + x];
        __syncthreads();
    }
    for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 4; ++x)
            c[(down + 4 * j + y) * n + across + 4 * i + x] = sums[y][x];
}

// A block is a warp in all that follow; `b` comes by columns where the instruction wants it so.
extern "C" __global__ void wmma_f16(const __half* a, const __half* b, float* c, int n)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    int x = blockIdx.x * 16, y = blockIdx.y * 16;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(left, a + y * n + k, n);
        wmma::load_matrix_sync(right, b + k * n + x, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + y * n + x, sum, n, wmma::mem_row_major);
}

__device__ void store_16_by_8(float* c, const float* sums, int n)
{
    int row = blockIdx.y * 16 + threadIdx.x / 4, column = blockIdx.x * 8 + threadIdx.x % 4 * 2;
    c[row * n + column] = sums[0];
    c[row * n + column + 1] = sums[1];
    c[(row + 8) * n + column] = sums[2];
    c[(row + 8) * n + column + 1] = sums[3];
}

extern "C" __global__ void mma_bf16(const unsigned short* a, const unsigned short* b, float* c, int n)
{
    int group = threadIdx.x / 4, place = threadIdx.x % 4;
    const unsigned short* upper = a + (blockIdx.y * 16 + group) * n + 2 * place;
    const unsigned short* lower = upper + 8 * n;
    const unsigned short* column = b + (blockIdx.x * 8 + group) * n + 2 * place;
    auto pair = [](const unsigned short* at) { return *reinterpret_cast<const unsigned*>(at); };
    float sums[4] = {};
    for (int k = 0; k < n; k += 16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(pair(upper + k)), "r"(pair(lower + k)), "r"(pair(upper + k + 8)), "r"(pair(lower + k + 8)),
              "r"(pair(column + k)), "r"(pair(column + k + 8)));
    store_16_by_8(c, sums, n);
}

extern "C" __global__ void mma_tf32(const float* a, const float* b, float* c, int n)
{
    int group = threadIdx.x / 4, place = threadIdx.x % 4;
    const float* upper = a + (blockIdx.y * 16 + group) * n + place;
    const float* lower = upper + 8 * n;
    const float* column = b + (blockIdx.x * 8 + group) * n + place;
    auto word = [](float v) { return __float_as_uint(v); };
    float sums[4] = {};
    for (int k = 0; k < n; k += 8)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(word(upper[k])), "r"(word(lower[k])), "r"(word(upper[k + 4])), "r"(word(lower[k + 4])),
              "r"(word(column[k])), "r"(word(column[k + 4])));
    store_16_by_8(c, sums, n);
}

extern "C" __global__ void mma_f64(const double* a, const double* b, double* c, int n)
{
    int group = threadIdx.x / 4, place = threadIdx.x % 4;
    const double* row = a + (blockIdx.y * 8 + group) * n + place;
    const double* column = b + (blockIdx.x * 8 + group) * n + place;
    double sums[2] = {};
    for (int k = 0; k < n; k += 4)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(sums[0]), "+d"(sums[1])
            : "d"(row[k]), "d"(column[k]));
    double* out = c + (blockIdx.y * 8 + group) * n + blockIdx.x * 8 + 2 * place;
    out[0] = sums[0];
    out[1] = sums[1];
}

// A warp for each query; a lane for each of 32 features. What was summed so far shrinks when a larger score comes.
extern "C" __global__ void attention(const float* q, const float* k, const float* v, float* out, int keys)
{
    int query = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float mine = q[query * 32 + lane], most = -1e30f, weights = 0, sum = 0;
    for (int j = 0; j < keys; ++j) {
        float score = mine * k[j * 32 + lane];
        for (int reach = 16; reach > 0; reach /= 2)
            score += __shfl_xor_sync(ALL, score, reach);
        float now = fmaxf(most, score), shrink = __expf(most - now), weight = __expf(score - now);
        weights = weights * shrink + weight;
        sum = sum * shrink + weight * v[j * 32 + lane];
        most = now;
    }
    out[query * 32 + lane] = sum / weights;
}
