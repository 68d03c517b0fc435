# exercise: modern.chunk  fails: bytes  says: naive
import torch


def chunk(q, k, v, alpha, beta, size):
    state, outs = torch.zeros(v.shape[1], k.shape[1]), []
    for t in range(len(q)):
        state = alpha[t] * state
        state = state + torch.outer(beta[t] * (v[t] - state @ k[t]), k[t])
        outs.append(state @ q[t])
    return torch.stack(outs)
