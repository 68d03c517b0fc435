# exercise: modern.absorb  fails: bytes  says: naive
import torch


def absorb(q, q_place, latent, k_place, w_k, w_v):
    keys, values = (torch.matmul(latent, w.transpose(1, 2)) for w in (w_k, w_v))
    scores = torch.bmm(keys, q.unsqueeze(2)).squeeze(2) + q_place @ k_place.t()
    return torch.bmm(torch.softmax(scores, dim=1).unsqueeze(1), values).squeeze(1)
