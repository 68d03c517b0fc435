# exercise: kv.count  fails: right  says: prefill


def count(model, gpu, batch, new, there):
    heads, kv, d, layers = (model[name] for name in ("heads", "kv_heads", "head_dim", "layers"))
    layer = 2 * model["width"] * d * (heads + kv) + 3 * model["width"] * model["hidden"]
    head = model["vocabulary"] * model["width"]
    pairs = new * there + new * (new + 1) // 2
    flops = batch * (2 * (layers * layer + head) * new + 4 * layers * heads * d * pairs)
    cache = 2 * layers * kv * d * model["cache_bytes"] * batch * (there + new)
    moved = model["weight_bytes"] * (layers * layer + head) + cache
    return [flops, moved, max(flops / gpu["peak"], moved / gpu["bandwidth"])]
