# how: one query at a time, and its scores of all keys in one row, so that nothing is ever rescaled
# exercise: attention.tiled
# earns: 3
# says: peak memory … naive
def tiled(q, k, v, tile):
    out, lse = torch.zeros(len(q), v.shape[1]), torch.full((len(q),), -math.inf)
    if len(k) == 0:
        return out, lse
    for i in range(len(q)):
        scores = k @ q[i]
        largest = scores.amax()
        weights = scores.sub_(largest).exp_()
        s = weights.sum()
        out[i] = (weights @ v).div_(s)
        lse[i] = largest + s.log()
    return out, lse
