# exercise: triton.gelu_dropout  fails: right  says: out[
import triton.language as tl

from gpulab import triton


@triton.jit
def gelu_dropout_kernel(x, bias, out, n, columns, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    z = tl.load(x + i, mask=inside) + tl.load(bias + i % columns, mask=inside)
    gelu = 0.5 * z * (1 + tl.erf(0.70710678 * z))
    kept = tl.rand(seed, i) < p
    tl.store(out + i, tl.where(kept, gelu / (1 - p), 0.0), mask=inside)


def gelu_dropout(x, bias, out, p, seed):
    grid = (triton.cdiv(x.size, 1024),)
    gelu_dropout_kernel[grid](x, bias, out, x.size, x.shape[1], p, seed, BLOCK=1024)
