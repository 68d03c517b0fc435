# exercise: pytorch.adamw_step  fails: launches, bytes moved  says: `_foreach_
import torch


def adamw_step(params, grads, means, squares, step, lr):
    torch._foreach_mul_(params, 1 - lr * 0.01)
    torch._foreach_lerp_(means, grads, 0.1)
    torch._foreach_mul_(squares, 0.999)
    torch._foreach_addcmul_(squares, grads, grads, 0.001)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_div_(roots, (1 - 0.999**step) ** 0.5)
    torch._foreach_add_(roots, 1e-8)
    torch._foreach_addcdiv_(params, means, roots, -lr / (1 - 0.9**step))
