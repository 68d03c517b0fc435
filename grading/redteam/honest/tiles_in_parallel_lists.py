# how: tiles kept in lists, results written into slices
# exercise: attention.tiled
def tiled(q, k, v, tile):
    n, d = len(q), v.shape[1]
    out, lse = torch.zeros(n, d), torch.full((n,), -math.inf)
    for i in range(0, n, tile):
        queries = q[i : i + tile]
        top = torch.full((len(queries), 1), -math.inf)
        norm = torch.zeros(len(queries), 1)
        acc = torch.zeros(len(queries), d)
        for keys, values in zip(k.split(tile), v.split(tile)):
            if len(keys) == 0:
                continue
            s = queries @ keys.T
            new = torch.maximum(top, s.max(1, keepdim=True).values)
            p, c = torch.exp(s - new), torch.exp(top - new)
            norm = c * norm + p.sum(1, keepdim=True)
            acc = c * acc + p @ values
            top = new
        if len(k):
            out[i : i + tile] = acc / norm
            lse[i : i + tile] = (top + norm.log())[:, 0]
    return out, lse
