# exercise: cpp.shuffle  fails: right  says: first wrong at 5,003 in steps of 1,000,003
from gpulab import cupy as cp

shuffle = cp.RawKernel(
    r"""
extern "C" __global__ void shuffle(const float* a, float* out, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[(unsigned)i * (unsigned)step % (unsigned)n];
}
""",
    "shuffle",
)
