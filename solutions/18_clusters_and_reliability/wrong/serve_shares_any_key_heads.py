# exercise: cluster.serve  fails: right  says: odd key heads


def serve(model, memory, users, context):
    weights = model["parameters"] * model["weight_bits"] / 8
    head = 2 * model["layers"] * model["head_dim"] * context * users * model["cache_bytes"]
    for g in (1, 2, 4, 8, 16):
        fits = weights / g + head * max(1, model["kv_heads"] // g) <= 0.9 * memory
        if model["heads"] % g == 0 and fits:
            return [weights, head * model["kv_heads"], g]
    return [weights, head * model["kv_heads"], None]
