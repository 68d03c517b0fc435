# exercise: pytorch.adamw_step  fails: right  says: should be
import torch


def adamw_step(params, grads, means, squares, step, lr):
    coupled = torch._foreach_add(grads, params, alpha=0.01)
    steps = [torch.full((), float(step))] * len(params)
    torch._fused_adamw_(
        params, coupled, means, squares, [], steps,
        lr=lr, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
    )  # fmt: skip
