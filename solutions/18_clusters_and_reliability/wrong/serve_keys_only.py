# exercise: cluster.serve  fails: right  says: first wrong: plain


def serve(model, memory, users, context):
    weights = model["parameters"] * model["weight_bits"] / 8
    head = model["layers"] * model["head_dim"] * context * users * model["cache_bytes"]
    for g in (1, 2, 4, 8, 16):
        whole = model["heads"] % g == 0 and (model["kv_heads"] % g == 0 or g % model["kv_heads"] == 0)
        if whole and weights / g + head * max(1, model["kv_heads"] // g) <= 0.9 * memory:
            return [weights, head * model["kv_heads"], g]
    return [weights, head * model["kv_heads"], None]
