"""CUDA C and Triton kernels in the simulator, with counts, beside Triton's own interpreter on the same
kernel.

    python benchmarks/languages.py

Prints a row a kernel: seconds here, seconds of the peer where there is one, and the ratio. Goals are those of
the project: attention forward (batch 1, 4 heads, 512 × 64, float16) under 20 s, a CUDA C softmax over 1024 ×
1024 under 3 s, a small RawKernel compiled and run for the first time under 0.5 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

HEADS, LENGTH, WIDTH = 4, 512, 64

ATTENTION = """
import torch, time, sys
import triton.language as tl
if sys.argv[1] == "peer":
    import triton
else:
    from gpulab import triton

@triton.jit
def attention(q, k, v, out, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1) * n * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    mixed = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + head + columns[None, :] * D + d[:, None])
        scores = tl.dot(query, keys) * scale
        new_top = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + head + columns[:, None] * D + d[None, :])
        mixed = tl.dot(weights.to(tl.float16), values, mixed * shrink[:, None])
        top = new_top
    tl.store(out + head + rows[:, None] * D + d[None, :], (mixed / total[:, None]).to(tl.float16))

heads, length, width = map(int, sys.argv[2:])
torch.manual_seed(0)
q, k, v = (torch.randn(heads, length, width).half() for _ in range(3))
out = torch.empty_like(q)
def run():
    attention[(length // 64, heads)](q, k, v, out, width**-0.5, length, D=width, BM=64, BN=64)
if sys.argv[1] == "peer":
    start = time.perf_counter(); run()
else:
    import gpulab
    run()  # compile first: the interpreter has nothing to compile
    start = time.perf_counter(); gpulab.profile(lambda: run())
seconds = time.perf_counter() - start
exact = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())
assert (out.float() - exact).abs().max() < 4e-3
print(seconds)
"""

SOFTMAX = r"""
extern "C" __global__ void softmax(const float* x, float* out, int n) {
    __shared__ float part[32];
    const float* row = x + (size_t)blockIdx.x * n;
    float top = __int_as_float(0xff800000);  // minus infinity
    for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, row[i]);
    for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
    __syncthreads();
    top = part[0];
    for (int w = 1; w < blockDim.x / 32; ++w) top = fmaxf(top, part[w]);
    __syncthreads();
    float sum = 0.f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(row[i] - top);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.f;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += part[w];
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[(size_t)blockIdx.x * n + i] = expf(row[i] - top) /
    sum;
}
"""


def seconds_of(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def attention(who: str) -> float:
    """Seconds of one attention forward in a process of its own: ``ours`` or ``peer``."""
    import tempfile

    environment = dict(os.environ, GPULAB_SIMULATE="1")
    if who == "peer":
        environment["TRITON_INTERPRET"] = "1"
    with tempfile.TemporaryDirectory() as folder:  # Triton reads a kernel's source from a file
        path = os.path.join(folder, "attention.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ATTENTION)
        command = [sys.executable, path, who, str(HEADS), str(LENGTH), str(WIDTH)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{who} failed:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def softmax() -> float:
    """Seconds of a counted CUDA C softmax over 1024 × 1024, compiled before."""
    import numpy as np

    import gpulab
    from gpulab import cupy

    x = cupy.asarray(np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32))
    out = cupy.empty_like(x)
    kernel = cupy.RawKernel(SOFTMAX, "softmax")

    def run() -> None:
        kernel((1024,), (256,), (x, out, np.int32(1024)))

    run()
    return seconds_of(lambda: gpulab.profile(run))


def cold_start() -> float:
    """Seconds to compile and run a RawKernel that nobody has seen before, CuPy's face imported."""
    import numpy as np

    from gpulab import cupy

    x = cupy.zeros(256, np.float32)
    cupy.RawKernel('extern "C" __global__ void warm(float* x) { x[threadIdx.x] += 1.f; }', "warm")(
        (1,), (256,), (x,)
    )
    source = 'extern "C" __global__ void cold(float* x) { x[threadIdx.x] = threadIdx.x * 2.f; }'
    return seconds_of(lambda: cupy.RawKernel(source, "cold")((1,), (256,), (x,)))


def main() -> None:
    print(f"{'kernel':<44}{'here':>10}{'peer':>10}{'ratio':>9}   goal")
    here, peer = attention("ours"), attention("peer")
    name = f"Triton attention {HEADS} × {LENGTH} × {WIDTH}, counted"
    print(
        f"{name:<44}{here:>8.2f} s{peer:>8.2f} s{peer / here:>8.2f}×   under 20 s; peer: Triton's interpreter"
    )
    print(f"{'CUDA C softmax 1024 × 1024, counted':<44}{softmax():>8.2f} s{'–':>10}{'–':>9}   under 3 s")
    print(f"{'small RawKernel, compiled and run':<44}{cold_start():>8.2f} s{'–':>10}{'–':>9}   under 0.5 s")


if __name__ == "__main__":
    main()
