# exercise: cluster.serve  fails: right  says: many users


def serve(model, memory, users, context):
    weights = model["parameters"] * model["weight_bits"] / 8
    cache = 2 * model["layers"] * model["kv_heads"] * model["head_dim"] * context * users
    cache *= model["cache_bytes"]
    for g in (1, 2, 4, 8, 16):
        whole = model["heads"] % g == 0 and (model["kv_heads"] % g == 0 or g % model["kv_heads"] == 0)
        if whole and (weights + cache) / g <= 0.9 * memory:
            return [weights, cache, g]
    return [weights, cache, None]
