# exercise: tensor.fence  fails: right  says: Write that
from gpulab import cupy as cp

fence = cp.RawKernel(
    HEAD
    + r"""
__device__ u64 plain(const void* tile) {
    u64 at = __cvta_generic_to_shared(tile);
    return at >> 4 | u64(128 >> 4) << 16 | u64(1024 >> 4) << 32;
}

extern "C" __global__ void convert(const float* a, const __half* b, float* c) {
    __shared__ alignas(128) __half of_a[64 * 64], of_b[64 * 64];
    int t = threadIdx.x;
    a += blockIdx.x * 64 * 64;
    for (int i = t; i < 64 * 64; i += 128) {
        int row = i / 64, k = i % 64;
        int place = row / 8 * 512 + k / 8 * 64 + row % 8 * 8 + k % 8;
        of_a[place] = __float2half(a[i]);
        of_b[place] = b[i];
    }
    __syncthreads();
    float d[32];
    begin_products();
    for (int i = 0; i < 4; i++) multiply(d, plain(of_a) + 16 * i, plain(of_b) + 16 * i, i > 0);
    end_products();
    wait_products<0>();
    store(d, c + blockIdx.x * 64 * 64, 64);
}
""",
    "convert",
)
