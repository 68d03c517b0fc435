# exercise: modern.absorb  fails: bytes, matrix FLOPs  says: calls
import torch


def absorb(q, q_place, latent, k_place, w_k, w_v):
    absorbed = torch.bmm(q.unsqueeze(1), w_k).squeeze(1)
    weights = torch.softmax(absorbed @ latent.t() + q_place @ k_place.t(), dim=1)
    return torch.bmm(weights.unsqueeze(1), torch.matmul(latent, w_v.transpose(1, 2))).squeeze(1)
