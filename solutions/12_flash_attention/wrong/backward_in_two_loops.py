# exercise: attention.backward  fails: matrix FLOPs  says: computed once for dq and again for dk
import torch


def backward(q, k, v, out, lse, dout, tile):
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    shares = (dout * out).sum(1)
    for both in (True, False):
        for i in range(0, len(q), tile):
            rows = slice(i, i + tile)
            for j in range(0, len(k), tile):
                keys = slice(j, j + tile)
                weights = torch.exp(q[rows] @ k[keys].t() - lse[rows, None])
                slopes = weights * (dout[rows] @ v[keys].t() - shares[rows, None])
                if both:
                    dv[keys] += weights.t() @ dout[rows]
                    dk[keys] += slopes.t() @ q[rows]
                else:
                    dq[rows] += slopes @ k[keys]
    return dq, dk, dv
