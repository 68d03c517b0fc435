# how: picks rows by their numbers, in the order of the keys
# exercise: modern.select
def select(q, k, v, means, keep):
    worth = (q @ means.T).softmax(-1).sum(0)
    best = torch.sort(torch.topk(worth, keep)[1])[0]
    rows = (best[:, None] * 64 + torch.arange(64)).flatten()
    return (q @ k[rows].T).softmax(-1) @ v[rows]
