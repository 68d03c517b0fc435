# exercise: triton.linear  fails: loaded bytes, launches  says: budget
import triton.language as tl

from gpulab import triton


@triton.jit
def product_kernel(x, w, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        across, down = depth[None, :], depth[:, None]
        a = tl.load(x + rows * k + across, mask=(rows < m) & (across < k), other=0.0)
        b = tl.load(w + down * n + columns, mask=(down < k) & (columns < n), other=0.0)
        total = tl.dot(a, b, total)
    tl.store(out + rows * n + columns, total.to(tl.float16), mask=(rows < m) & (columns < n))


@triton.jit
def bias_relu_kernel(x, bias, n, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(x + i, mask=i < n) + tl.load(bias + i % columns, mask=i < n)
    tl.store(x + i, tl.maximum(z, 0.0), mask=i < n)


def linear(x, w, bias, out):
    (m, k), n = x.shape, w.shape[1]
    product_kernel[(triton.cdiv(m, 128), triton.cdiv(n, 64))](x, w, out, m, n, k, BM=128, BN=64, BK=32)
    bias_relu_kernel[(triton.cdiv(m * n, 1024),)](out, bias, m * n, n, BLOCK=1024)
