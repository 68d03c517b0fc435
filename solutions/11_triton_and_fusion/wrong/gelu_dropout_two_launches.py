# exercise: triton.gelu_dropout  fails: bytes moved, launches  says: 2 launches
import triton.language as tl

from gpulab import triton


@triton.jit
def gelu_kernel(x, bias, out, n, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(x + i, mask=i < n) + tl.load(bias + i % columns, mask=i < n)
    tl.store(out + i, 0.5 * z * (1 + tl.erf(0.70710678 * z)), mask=i < n)


@triton.jit
def dropout_kernel(x, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, i) >= p
    tl.store(x + i, tl.where(kept, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


def gelu_dropout(x, bias, out, p, seed):
    grid = (triton.cdiv(x.size, 1024),)
    gelu_kernel[grid](x, bias, out, x.size, x.shape[1], BLOCK=1024)
    dropout_kernel[grid](out, x.size, p, seed, BLOCK=1024)
