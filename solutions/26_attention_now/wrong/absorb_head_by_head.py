# exercise: modern.absorb  fails: bytes  says: naive
import torch


def absorb(q, q_place, latent, k_place, w_k, w_v):
    outs = []
    for head in range(len(q)):
        keys, values = latent @ w_k[head].t(), latent @ w_v[head].t()
        weights = torch.softmax(keys @ q[head] + k_place @ q_place[head], dim=0)
        outs.append(weights @ values)
    return torch.stack(outs)
