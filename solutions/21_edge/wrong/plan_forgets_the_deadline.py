# exercise: edge.plan  fails: right  says: first wrong: a deadline


def plan(model, device, need, formats, caches):
    numbers = 2 * model["layers"] * model["kv_heads"] * model["head_dim"] * need["context"]
    best, least = None, float("inf")
    for name, bits, group, loss in formats:
        weights = model["parameters"] * (bits + (16 / group if group else 0)) / 8
        for cache, cache_bits, cache_loss in caches:
            kept = numbers * cache_bits / 8
            size = weights + 2 * model["table"] + kept
            seconds = (weights + kept) / device["bandwidth"]
            fits = size <= device["memory"] - device["reserved"]
            if fits and loss + cache_loss < least:
                best, least = [name, cache, size, seconds], loss + cache_loss
    return best
