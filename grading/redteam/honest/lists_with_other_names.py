# how: the norm of all gradients by powers and a root
# exercise: pytorch.clip
def clip(grads, most):
    lengths = torch._foreach_norm(list(grads), 2.0)
    total = torch.linalg.vector_norm(torch.stack(lengths), ord=2)
    factor = (most / (total + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(list(grads), factor)
