# exercise: compress.serve  fails: right  says: `a[places]`
import torch


def serve(x, weight, a, b, adapter, scale):
    rows = []
    for i in range(len(x)):
        k = adapter[i]
        rows.append(weight @ x[i] + scale * (b[k] @ (a[k] @ x[i])))
    return torch.stack(rows)
