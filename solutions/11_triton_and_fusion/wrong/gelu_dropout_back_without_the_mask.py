# exercise: triton.gelu_dropout_back  fails: right  says: out[
import triton.language as tl

from gpulab import triton


@triton.jit
def gelu_dropout_back_kernel(grad, x, bias, out, n, columns, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    z = tl.load(x + i, mask=inside) + tl.load(bias + i % columns, mask=inside)
    slope = 0.5 * (1 + tl.erf(0.70710678 * z)) + 0.39894228 * z * tl.exp(-0.5 * z * z)
    kept = tl.rand(seed, i) >= p
    given = tl.load(grad + i, mask=inside)
    tl.store(out + i, given * slope, mask=inside)


def gelu_dropout_back(grad, x, bias, out, p, seed):
    grid = (triton.cdiv(x.size, 1024),)
    gelu_dropout_back_kernel[grid](grad, x, bias, out, x.size, x.shape[1], p, seed, BLOCK=1024)
