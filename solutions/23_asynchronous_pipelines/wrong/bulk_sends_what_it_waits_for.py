# exercise: async.bulk  fails: bytes in flight  says: naive 0
from gpulab import cupy as cp

bulk = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void bulk(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[2][256];
    __shared__ unsigned long long full[2];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 256;
    out += blockIdx.x * tiles * 256;
    if (t == 0) {
        ptx::mbarrier_init(&full[0], 1);
        ptx::mbarrier_init(&full[1], 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        if (t == 0) {
            expect(&full[k % 2], sizeof slot[0]);
            ptx::cp_async_bulk(
                ptx::space_cluster, ptx::space_global, slot[k % 2], x + k * 256, sizeof slot[0], &full[k % 2]);
        }
        wait(&full[k % 2], k / 2 & 1);
        float4 v = slot[k % 2][255 - t];
        __syncthreads();
        out[k * 256 + t] = make_float4(v.w, v.z, v.y, v.x);
    }
}
""",
    "bulk",
)
