# how: F.normalize and addmm in place of a quotient by norms
# exercise: compress.merge
import torch
import torch.nn.functional as F


def merge(weight, a, b, scale, magnitude):
    total = torch.addmm(weight, b, a, alpha=scale)
    return F.normalize(total, dim=1) * magnitude.unsqueeze(1)
