# exercise: triton.momentum  fails: right  says: has 1000 elements
import triton.language as tl

from gpulab import triton


@triton.jit
def momentum_kernel(p, g, m, lr, mu, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    step = mu * tl.load(m + i) + tl.load(g + i)
    tl.store(m + i, step)
    tl.store(p + i, tl.load(p + i) - lr * step)


def momentum(p, g, m, lr, mu):
    momentum_kernel[(triton.cdiv(p.size, 1024),)](p, g, m, lr, mu, p.size, BLOCK=1024)
