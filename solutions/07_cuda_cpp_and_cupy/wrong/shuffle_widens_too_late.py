# exercise: cpp.shuffle  fails: right  says: OutOfBounds
from gpulab import cupy as cp

shuffle = cp.RawKernel(
    r"""
extern "C" __global__ void shuffle(const float* a, float* out, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long k = i * step;  // widened when it is too late
    if (i < n) out[i] = a[k % n];
}
""",
    "shuffle",
)
