# exercise: triton.momentum  fails: right  says: p[
import triton.language as tl

from gpulab import triton


@triton.jit
def momentum_kernel(p, g, m, lr, mu, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    step = mu * tl.load(m + i, mask=inside) + tl.load(g + i, mask=inside)
    tl.store(p + i, tl.load(p + i, mask=inside) - lr * tl.load(m + i, mask=inside), mask=inside)
    tl.store(m + i, step, mask=inside)


def momentum(p, g, m, lr, mu):
    momentum_kernel[(triton.cdiv(p.size, 1024),)](p, g, m, lr, mu, p.size, BLOCK=1024)
