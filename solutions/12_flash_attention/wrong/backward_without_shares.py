# exercise: attention.backward  fails: right  says: `dq
import torch


def backward(q, k, v, out, lse, dout, tile):
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for i in range(0, len(q), tile):
        rows = slice(i, i + tile)
        for j in range(0, len(k), tile):
            keys = slice(j, j + tile)
            weights = torch.exp(q[rows] @ k[keys].t() - lse[rows, None])
            dv[keys] += weights.t() @ dout[rows]
            slopes = weights * (dout[rows] @ v[keys].t())
            dq[rows] += slopes @ k[keys]
            dk[keys] += slopes.t() @ q[rows]
    return dq, dk, dv
