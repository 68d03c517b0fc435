# exercise: pytorch.adamw_step  fails: launches  says: 1,480 launches
def adamw_step(params, grads, means, squares, step, lr):
    for p, g, m, v in zip(params, grads, means, squares, strict=True):
        p.mul_(1 - lr * 0.01)
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        mean, square = m / (1 - 0.9**step), v / (1 - 0.999**step)
        p.addcdiv_(mean, square.sqrt_().add_(1e-8), value=-lr)
