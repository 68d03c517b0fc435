# exercise: modern.chunk  fails: right  says: forgetful
import torch


def chunk(q, k, v, alpha, beta, size):
    state, outs = torch.zeros(k.shape[1], v.shape[1]), []
    for rows in zip(*(x.split(size) for x in (q, k, v, alpha, beta)), strict=True):
        queries, keys, values, a, b = rows
        g = torch.cumsum(torch.log(a), 0)
        since_start, b = torch.exp(g)[:, None], b[:, None]
        decay = (torch.exp(g)[:, None] * torch.exp(-g)).tril()
        lower = (b * (keys @ keys.t()) * decay).tril(-1)
        found = b * (values - since_start * (keys @ state))
        x = torch.linalg.solve_triangular(torch.eye(len(b)) + lower, found, upper=False)
        outs.append(since_start * (queries @ state) + ((queries @ keys.t()) * decay) @ x)
        to_end = torch.exp(g[-1] - g)[:, None]
        state = torch.exp(g[-1]) * state + (keys * to_end).t() @ x
    return torch.cat(outs)
