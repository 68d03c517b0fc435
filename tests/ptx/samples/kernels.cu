// Kernels for NVRTC. "//// name options" starts a module of its own; make_samples.py compiles each, nothing runs them.

//// scale -lineinfo
extern "C" __global__ void __launch_bounds__(256, 2) scale(float *out, const float *__restrict__ x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + out[i];
}

//// reduction -lineinfo
extern __shared__ __align__(16) int partial[];

__device__ int warp_sum(int value) {
#pragma unroll
    for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    return value;
}

extern "C" __global__ void reduction(int *out, const int4 *x, unsigned n) {
    int total = 0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        int4 four = x[i];
        total += four.x + four.y + four.z + four.w;
    }
    total = warp_sum(total);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x < 32) {
        total = warp_sum(threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0);
        if (threadIdx.x == 0) atomicAdd(out, total);
    }
}

//// switch
extern "C" __global__ void chosen(int *x, int which) {
    int i = threadIdx.x, v = x[i];
    switch (which + i % 2) {
        case 0: v = v + 3; break;
        case 1: v = __mulhi(v, 7919); break;
        case 2: v = v / 3; break;
        case 3: v = v % 5; break;
        case 4: v = v << (v & 7); break;
        case 5: v = __popc(v); break;
        case 6: v = __clz(v); break;
        case 7: v = atomicMax(x + 99, v); break;
        case 8: v = __brev(v); break;
        case 9: return;
        default: __trap();
    }
    x[i] = v;
}

//// pointers
struct Row { short kind; float weight; const char *name; float (*apply)(float); };

__device__ __noinline__ float twice(float x) { return x + x; }
__device__ __noinline__ float half_of(float x) { return x * 0.5f; }
__device__ const char first[] = "first";
__constant__ Row rows[3] = {{1, 0.5f, first, twice}, {2, -1.5f, first + 2, half_of}, {3, 0.0f, 0, 0}};
__device__ float *somewhere = 0;
__device__ int grid_of[2][3] = {{1, 2}, {3}};
__constant__ double exact = 0.1;

extern "C" __global__ void called_through(float *x, int which) {
    const Row &row = rows[which];
    if (row.apply) x[threadIdx.x] = row.apply(x[threadIdx.x]) * row.weight + (float)exact;
    if (row.name) x[threadIdx.x] += row.name[0] + grid_of[which][row.kind];
    if (somewhere) *somewhere = x[0];
}

//// calls
struct Pair { double first; int second[3]; };

__device__ __noinline__ Pair made(double x, Pair other) {
    other.first += x;
    other.second[1] = (int)x;
    return other;
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

extern "C" __device__ int printf(const char *, ...);

extern "C" __global__ void calls(double *x, int *y) {
    Pair pair = {x[0], {1, 2, 3}};
    pair = made(x[1], made(x[2], pair));
    x[threadIdx.x] = pair.first;
    y[threadIdx.x] = pair.second[1] + ackermann(2, y[0]);
    if (y[1] > 3) printf("%d %f\n", y[1], x[1]);
}

//// assembly
// Each use of `waited` brings the same names again, in braces of its own.
__device__ __forceinline__ void waited(unsigned long long *barrier, unsigned phase) {
    unsigned address = (unsigned)__cvta_generic_to_shared(barrier);
    asm volatile("{\n"
                 "  .reg .pred done;   // declared again\n"
                 "  .reg .b32 %%tries<3>;\n"
                 "  mov.u32 %%tries1, 0;\n"
                 "again:\n"
                 "  mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
                 "  add.u32 %%tries1, %%tries1, 1;\n"
                 "  @done bra.uni out;\n"
                 "  bra.uni again;\n"
                 "out: /* here at last */\n"
                 "}" ::"r"(address), "r"(phase) : "memory");
}

extern "C" __global__ void assembly(int *x, const int *y) {
    __shared__ unsigned long long barrier;
    __shared__ int4 stage[64];
    unsigned address = (unsigned)__cvta_generic_to_shared(&barrier);
    unsigned place = (unsigned)__cvta_generic_to_shared(&stage[threadIdx.x]);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(address));
    __syncthreads();
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(place), "l"(y + 4 * threadIdx.x));
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address));
    waited(&barrier, 0);
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address));
    waited(&barrier, 1);
    unsigned low, high, odd;
    asm("{ .reg .pred p, q; setp.lt.s32 p|q, %3, 0; selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, !q; and.pred p, p, !q; "
        "@!p mov.b32 %2, 7; @p mov.b32 %2, WARP_SZ; }"
        : "=r"(low), "=r"(high), "=r"(odd) : "r"(stage[threadIdx.x].x));
    asm volatile("prefetch.global.L1 [%0];" ::"l"(x));
    x[threadIdx.x] = low + high + odd + stage[threadIdx.x].y;
}

//// matrix
extern "C" __global__ void matrix(float *d, const unsigned *a, const float *c) {
    __shared__ __align__(16) unsigned tile[256];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncwarp();
    unsigned place = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x * 4]);
    unsigned r0, r1, r2, r3;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(place));
    float f0 = c[0], f1 = c[1], f2 = c[2], f3 = c[3];
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(f0), "+f"(f1), "+f"(f2), "+f"(f3) : "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"(r0), "r"(r2));
    float w[8];
    asm("{ .reg .b32 a<8>; wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {a0, a1, a2, a3, a4, a5, a6, a7}, [%8], 16;\n"
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {a0, a1, a2, a3, a4, a5, a6, a7}, "
        "{a0, a1, a2, a3, a4, a5, a6, a7}, {%9, %10, %11, %12, %9, %10, %11, %12}; }"
        : "=f"(w[0]), "=f"(w[1]), "=f"(w[2]), "=f"(w[3]), "=f"(w[4]), "=f"(w[5]), "=f"(w[6]), "=f"(w[7])
        : "r"(place), "f"(f0), "f"(f1), "f"(f2), "f"(f3));
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, 16;" ::"l"(d),
                 "f"(w[0]), "f"(w[1]), "f"(w[2]), "f"(w[3]), "f"(w[4]), "f"(w[5]), "f"(w[6]), "f"(w[7]));
}

//// halves
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void halves(__half2 *x, __nv_bfloat16 *y, const float *z) {
    int i = threadIdx.x;
    x[i] = __hfma2(x[i], __float2half2_rn(z[i]), h2exp(x[i]));
    y[i] = __hmul(y[i], __float2bfloat16(z[i]));
    if (__hgt(__low2half(x[i]), __ushort_as_half(0x3c00))) x[i] = __hneg2(x[i]);
}

//// atomics
template <typename T> __device__ void all_of_them(T *x, T v) {
    atomicAdd(x, v);
    atomicMin(x + 1, v);
    atomicExch(x + 2, atomicCAS(x + 3, v, v + 1));
    atomicXor(x + 4, v);
}

extern "C" __global__ void atomics(unsigned *x, unsigned long long *y, double *z) {
    __shared__ unsigned tile[8];
    if (threadIdx.x < 8) tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    all_of_them(tile, x[9]);
    all_of_them(y, y[9]);
    atomicAdd(z, 1.5);
    atomicInc(x + threadIdx.x, 31);
    __threadfence();
    if (atomicAdd_block(x, 1u) == 7) atomicAdd_system(x + 1, 2u);
}

//// warps
extern "C" __global__ void warps(unsigned *x, float *y) {
    unsigned mask = __ballot_sync(__activemask(), x[threadIdx.x] & 1);
    int same;
    unsigned equal = __match_all_sync(0xffffffffu, x[threadIdx.x], &same);
    unsigned sum = __reduce_add_sync(0xffffffffu, x[threadIdx.x]);
    float up = __shfl_up_sync(0xffffffffu, y[threadIdx.x], 1);
    unsigned lanes, clock;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes));
    asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
    if (__all_sync(0xffffffffu, same)) x[threadIdx.x] = mask ^ equal ^ sum ^ lanes ^ clock;
    if (__syncthreads_or(x[0] == 3)) y[threadIdx.x] = up;
    __nanosleep(20);
}

//// texture
extern "C" __global__ void texture(float *out, unsigned long long picture, float u, float v) {
    float r, g, b, a;
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(r), "=f"(g), "=f"(b), "=f"(a) : "l"(picture), "f"(u), "f"(v));
    out[threadIdx.x] = r + g + b + a;
}

//// debugged -G
__device__ int doubled(int x) { return 2 * x; }
extern "C" __global__ void debugged(int *x) {
    int i = threadIdx.x;
    if (i % 2) x[i] = doubled(x[i]);
}
