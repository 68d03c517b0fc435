# exercise: modern.absorb  fails: right  says: should be
import torch


def absorb(q, q_place, latent, k_place, w_k, w_v):
    absorbed = torch.bmm(q.unsqueeze(1), w_k).squeeze(1)
    weights = torch.softmax(absorbed @ latent.t(), dim=1)
    return torch.bmm(w_v, (weights @ latent).unsqueeze(2)).squeeze(2)
