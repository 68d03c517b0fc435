# exercise: attention.cores  fails: right  says: should be
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
    unsigned queries[D / 16][4];
    for (int i = 0; i < D / 16; i++) {
        const unsigned* p = (const unsigned*)(q + row * D + 16 * i) + t;
        queries[i][0] = p[0];
        queries[i][1] = p[4 * D];
        queries[i][2] = p[4];
        queries[i][3] = p[4 * D + 4];
    }
    float total[D / 8][4] = {};
    float largest[2] = {-CUDART_INF_F, -CUDART_INF_F}, s[2] = {0, 0};
    for (int first = 0; first < m; first += 16) {
        float score[2][4] = {};
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < D / 16; i++) {
                const unsigned* p = (const unsigned*)(k + (first + 8 * side + g) * D + 16 * i) + t;
                unsigned b[2] = {p[0], p[4]};
                mma(score[side], queries[i], b);
            }
        unsigned weights[4];
        for (int r = 0; r < 2; r++) {
            float* a = score[0] + 2 * r;
            float* b = score[1] + 2 * r;
            float larger = fmaxf(fmaxf(a[0], a[1]), fmaxf(b[0], b[1]));
            larger = fmaxf(larger, __shfl_xor_sync(0xffffffff, larger, 1));
            larger = fmaxf(larger, __shfl_xor_sync(0xffffffff, larger, 2));
            larger = fmaxf(larger, largest[r]);
            float old = __expf(largest[r] - larger);
            largest[r] = larger;
            s[r] *= old;
            for (int j = 0; j < 2; j++) {
                a[j] = __expf(a[j] - larger);
                b[j] = __expf(b[j] - larger);
                s[r] += a[j] + b[j];
            }
            weights[r] = pack(a[0], a[1]);
            weights[r + 2] = pack(b[0], b[1]);
            for (int i = 0; i < D / 8; i++) {
                total[i][2 * r] *= old;
                total[i][2 * r + 1] *= old;
            }
        }
        for (int i = 0; i < D / 8; i++) {
            const __half* p = v + (first + 2 * t) * D + 8 * i + g;
            unsigned b[2] = {stacked(p, p + D), stacked(p + 8 * D, p + 9 * D)};
            mma(total[i], weights, b);
        }
    }
    for (int r = 0; r < 2; r++) {
        float* to = out + (row + 8 * r) * D + 2 * t;
        for (int i = 0; i < D / 8; i++) {
            to[8 * i] = total[i][2 * r] / s[r];
            to[8 * i + 1] = total[i][2 * r + 1] / s[r];
        }
        if (t == 0) lse[row + 8 * r] = largest[r] + logf(s[r]);
    }
}
""",
    "cores",
)
