# exercise: triton.gelu_dropout_back  fails: bytes moved  says: budget
import numpy as np
import triton.language as tl

from gpulab import cuda, triton


@triton.jit
def keep_kernel(kept, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(kept + i, tl.where(tl.rand(seed, i) >= p, 1.0, 0.0), mask=i < n)


@triton.jit
def back_kernel(grad, x, bias, kept, out, n, columns, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    z = tl.load(x + i, mask=inside) + tl.load(bias + i % columns, mask=inside)
    slope = 0.5 * (1 + tl.erf(0.70710678 * z)) + 0.39894228 * z * tl.exp(-0.5 * z * z)
    factor = tl.load(kept + i, mask=inside) / (1 - p)
    tl.store(out + i, tl.load(grad + i, mask=inside) * slope * factor, mask=inside)


def gelu_dropout_back(grad, x, bias, out, p, seed):
    grid = (triton.cdiv(x.size, 1024),)
    kept = cuda.device_array(x.shape, np.float32)
    keep_kernel[grid](kept, x.size, p, seed, BLOCK=1024)
    back_kernel[grid](grad, x, bias, kept, out, x.size, x.shape[1], p, BLOCK=1024)
