"""The kernels in CUDA C++."""

from gpulab import cupy as cp

CODE = r"""
#include <cuda_fp16.h>
#include <math_constants.h>
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns) {
  __shared__ float tile[32][33];
  int i = threadIdx.x, j = threadIdx.y, row = blockIdx.y * 32, column = blockIdx.x * 32;
  for (int k = 0; k < 32; k += 8) tile[j + k][i] = x[(row + j + k) * columns + column + i];
  __syncthreads();
  for (int k = 0; k < 32; k += 8) y[(column + j + k) * rows + row + i] = tile[i][j + k];
}

extern "C" __global__ void softmax(const float* x, float* y, int n) {
  x += blockIdx.x * n, y += blockIdx.x * n;
  float top = -CUDART_INF_F, total = 0;
  for (int i = threadIdx.x; i < n; i += 32) top = fmaxf(top, x[i]);
  for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  for (int i = threadIdx.x; i < n; i += 32) total += expf(x[i] - top);
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  for (int i = threadIdx.x; i < n; i += 32) y[i] = expf(x[i] - top) / total;
}

extern "C" __global__ void matmul(const half* a, const half* b, float* c, int n, int k) {
  int row = blockIdx.y * 16, column = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> total;
  wmma::fill_fragment(total, 0.0f);
  for (int at = 0; at < k; at += 16) {
    wmma::load_matrix_sync(left, a + row * k + at, k);
    wmma::load_matrix_sync(right, b + at * n + column, n);
    wmma::mma_sync(total, left, right, total);
  }
  wmma::store_matrix_sync(c + row * n + column, total, n, wmma::mem_row_major);
}

extern "C" __global__ void attention(const half2* q, const half2* k, const half2* v, float2* out, int n) {
  int lane = threadIdx.x;
  float2 query = __half22float2(q[blockIdx.x * 32 + lane]), mixed = {0, 0};
  float top = -CUDART_INF_F, total = 0;
  for (int j = 0; j < n; j++) {
    float2 key = __half22float2(k[j * 32 + lane]), value = __half22float2(v[j * 32 + lane]);
    float score = query.x * key.x + query.y * key.y;
    for (int step = 16; step; step /= 2) score += __shfl_xor_sync(~0u, score, step);
    float new_top = fmaxf(top, score * 0.125f);
    float weight = expf(score * 0.125f - new_top), shrink = expf(top - new_top);
    total = total * shrink + weight;
    mixed = {mixed.x * shrink + weight * value.x, mixed.y * shrink + weight * value.y};
    top = new_top;
  }
  out[blockIdx.x * 32 + lane] = {mixed.x / total, mixed.y / total};
}
"""
module = cp.RawModule(code=CODE)


def add(a, b, c):
    module.get_function("add")((-(-c.size // 256),), (256,), (a, b, c, c.size))


def transpose(x, y):
    rows, columns = x.shape
    module.get_function("transpose")((columns // 32, rows // 32), (32, 8), (x, y, rows, columns))


def softmax(x, y):
    module.get_function("softmax")((x.shape[0],), (32,), (x, y, x.shape[1]))


def matmul(a, b, c):
    n, k = c.shape[1], a.shape[1]
    module.get_function("matmul")((n // 16, c.shape[0] // 16), (32,), (a, b, c, n, k))


def attention(q, k, v, out):
    module.get_function("attention")((q.shape[0],), (32,), (q, k, v, out, q.shape[0]))
