# how: the grid is a lambda of the block, as Triton's tutorials have it
# exercise: triton.momentum
@triton.jit
def momentum_kernel(p_ptr, g_ptr, m_ptr, lr, mu, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    m = tl.load(m_ptr + offsets, mask=mask)
    g = tl.load(g_ptr + offsets, mask=mask)
    p = tl.load(p_ptr + offsets, mask=mask)
    m = mu * m + g
    tl.store(m_ptr + offsets, m, mask=mask)
    tl.store(p_ptr + offsets, p - lr * m, mask=mask)


def momentum(p, g, m, lr, mu):
    n = p.size
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)
    momentum_kernel[grid](p, g, m, lr, mu, n, BLOCK_SIZE=512)
