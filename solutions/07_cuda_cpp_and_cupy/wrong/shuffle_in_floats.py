# exercise: cpp.shuffle  fails: right  says: should be
from gpulab import cupy as cp

shuffle = cp.RawKernel(
    r"""
extern "C" __global__ void shuffle(const float* a, float* out, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[(int)fmodf((float)i * (float)step, (float)n)];
}
""",
    "shuffle",
)
