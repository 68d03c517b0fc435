# exercise: tiles.attention  fails: right  says: infinity
from gpulab import tile as ct


@ct.kernel
def attention_kernel(q, k, v, out):
    i = ct.bid(0)
    mine = ct.load(q, index=(i, 0), shape=(64, 64))
    s = ct.full((64, 1), 0.0, dtype=ct.float32)
    total = ct.full((64, 64), 0.0, dtype=ct.float32)
    places = ct.arange(64, dtype=ct.int32)
    seen = ct.reshape(places, (1, 64)) <= ct.reshape(places, (64, 1))
    for j in range(i + 1):
        keys = ct.load(k, index=(j, 0), shape=(64, 64))
        values = ct.load(v, index=(j, 0), shape=(64, 64))
        scores = ct.mma(mine, ct.transpose(keys), ct.full((64, 64), 0.0, dtype=ct.float32))
        if j == i:
            scores = ct.where(seen, scores, -float("inf"))
        weights = ct.exp2(scores)
        s = s + ct.sum(weights, axis=1, keepdims=True)
        total = ct.mma(ct.astype(weights, ct.float16), values, total)
    ct.store(out, index=(i, 0), tile=total / s)


def attention(q, k, v, out):
    ct.launch(0, (q.shape[0] // 64,), attention_kernel, (q, k, v, out))
