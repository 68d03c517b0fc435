# exercise: triton.linear  fails: right  says: cancelling
import triton.language as tl

from gpulab import triton


@triton.jit
def linear_kernel(x, w, bias, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float16)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        across, down = depth[None, :], depth[:, None]
        a = tl.load(x + rows * k + across, mask=(rows < m) & (across < k), other=0.0)
        b = tl.load(w + down * n + columns, mask=(down < k) & (columns < n), other=0.0)
        total = tl.dot(a, b, total, out_dtype=tl.float16)
    total = tl.maximum(total + tl.load(bias + columns, mask=columns < n, other=0.0), 0.0)
    tl.store(out + rows * n + columns, total.to(tl.float16), mask=(rows < m) & (columns < n))


def linear(x, w, bias, out):
    (m, k), n = x.shape, w.shape[1]
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    linear_kernel[grid](x, w, bias, out, m, n, k, BM=64, BN=64, BK=32)
