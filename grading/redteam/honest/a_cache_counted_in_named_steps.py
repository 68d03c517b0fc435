# how: a sum of named terms with type hints, in which a loop counts the pairs
# exercise: kv.count
def count(model: dict, gpu: dict, batch: int, new: int, there: int) -> list[float]:
    L, h, g, d = model["layers"], model["heads"], model["kv_heads"], model["head_dim"]
    attention_weights = model["width"] * (2 * h * d + 2 * g * d)
    mlp_weights = 3 * model["width"] * model["hidden"]
    body = L * (attention_weights + mlp_weights)
    head = model["width"] * model["vocabulary"]
    linear = 2 * batch * (new * body + head)
    seen = sum(there + 1 + i for i in range(new))
    attention = 4 * batch * L * h * d * seen
    flops = linear + attention
    weights_read = (body + head) * model["weight_bytes"]
    cache_read = batch * 2 * L * g * d * (there + new) * model["cache_bytes"]
    moved = weights_read + cache_read
    seconds = max(moved / gpu["bandwidth"], flops / gpu["peak"])
    return [flops, moved, seconds]
