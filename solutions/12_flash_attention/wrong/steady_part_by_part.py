# exercise: attention.steady  fails: bytes  says: how often is each part read
import torch


def steady(outs, lses):
    results = []
    for p in range(len(outs)):
        others = [j for j in range(len(outs)) if j != p]
        rest = lses[others]
        largest = rest.amax(0)
        weights = torch.exp(rest - largest)
        whole = weights.sum(0)
        shares = (weights / whole).t().unsqueeze(1)
        out = torch.bmm(shares, outs[others].transpose(0, 1)).squeeze(1)
        results.append((out, largest + torch.log(whole)))
    return torch.stack([out for out, _ in results]), torch.stack([lse for _, lse in results])
