# how: blocks of 256 elements, four warps fewer, and a launch through a variable
# exercise: triton.momentum
@triton.jit
def step_kernel(p, g, m, lr, mu, n, SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * SIZE + tl.arange(0, SIZE)
    mask = offsets < n
    velocity = tl.load(m + offsets, mask=mask, other=0.0) * mu
    velocity += tl.load(g + offsets, mask=mask, other=0.0)
    tl.store(m + offsets, velocity, mask=mask)
    tl.store(p + offsets, tl.load(p + offsets, mask=mask) - velocity * lr, mask=mask)


def momentum(p, g, m, lr, mu):
    grid = lambda meta: (triton.cdiv(p.size, meta["SIZE"]),)
    step_kernel[grid](p, g, m, lr, mu, p.size, SIZE=256, num_warps=2)
