# how: multiplies matrices with vectors, over all pairs: FLOPs that PyTorch's own counter leaves out
# exercise: attention.causal
# earns: 2
# slow: yes
# says: causal flops
def causal(q, k, v, window, tile):
    outs, lses = [], []
    for i in range(len(q)):
        behind = len(k) - len(q) + i - torch.arange(len(k))
        scores = torch.where((behind >= 0) & (behind < window), torch.mv(k, q[i]), -math.inf)
        m = scores.amax()
        shift = torch.where(m > -math.inf, m, 0.0)
        weights = torch.exp(scores - shift)
        s = weights.sum()
        outs.append(torch.mv(v.t(), weights) / s.clamp(min=1e-30))
        lses.append(shift + torch.log(s))
    return torch.stack(outs), torch.stack(lses)
