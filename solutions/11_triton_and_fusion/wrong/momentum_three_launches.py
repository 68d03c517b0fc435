# exercise: triton.momentum  fails: loaded bytes  says: 163,840
import triton.language as tl

from gpulab import triton


@triton.jit
def shrink(m, mu, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(m + i, mu * tl.load(m + i, mask=i < n), mask=i < n)


@triton.jit
def add(m, g, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    both = tl.load(m + i, mask=i < n) + factor * tl.load(g + i, mask=i < n)
    tl.store(m + i, both, mask=i < n)


def momentum(p, g, m, lr, mu):
    grid = (triton.cdiv(p.size, 1024),)
    shrink[grid](m, mu, p.size, BLOCK=1024)
    add[grid](m, g, 1.0, p.size, BLOCK=1024)
    add[grid](p, m, -lr, p.size, BLOCK=1024)
