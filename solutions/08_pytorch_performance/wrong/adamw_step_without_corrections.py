# exercise: pytorch.adamw_step  fails: right  says: params[0]
def adamw_step(params, grads, means, squares, step, lr):
    for p, g, m, v in zip(params, grads, means, squares, strict=True):
        p.mul_(1 - lr * 0.01)
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, v.sqrt().add_(1e-8), value=-lr)
