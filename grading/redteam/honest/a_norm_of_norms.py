# how: the norm as a root of a sum of squares of norms
# exercise: pytorch.clip
def clip(grads, most):
    norms = torch._foreach_norm(grads, 2)
    total = torch.stack(norms).norm()
    factor = (most / (total + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(grads, factor)
