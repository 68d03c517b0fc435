# how: for each tile of queries all keys that any of them sees, at once
# exercise: attention.causal
def causal(q, k, v, window, tile):
    n, m = len(q), len(k)
    out, lse = torch.zeros(n, v.shape[1]), torch.full((n,), -math.inf)
    for i in range(0, n, tile):
        stop = min(i + tile, n)
        place = torch.arange(i, stop) + m - n
        first = max(0, i + m - n - window + 1) // tile * tile
        last = stop + m - n
        if last <= first:
            continue
        last = min(m, -(-last // tile) * tile) if False else last
        column = torch.arange(first, last)
        seen = (column <= place[:, None]) & (column > place[:, None] - window)
        s = torch.where(seen, q[i:stop] @ k[first:last].T, -math.inf)
        top = s.amax(1, keepdim=True)
        p = torch.exp(s - torch.where(top == -math.inf, 0.0, top))
        whole = p.sum(1, keepdim=True)
        out[i:stop] = (p @ v[first:last]) / torch.where(whole > 0, whole, 1.0)
        lse[i:stop] = torch.where(whole > 0, top + torch.log(whole), -math.inf)[:, 0]
    return out, lse
