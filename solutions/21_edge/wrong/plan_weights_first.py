# exercise: edge.plan  fails: right  says: eight gigabytes


def plan(model, device, need, formats, caches):
    numbers = 2 * model["layers"] * model["kv_heads"] * model["head_dim"] * need["context"]
    room = device["memory"] - device["reserved"] - 2 * model["table"]
    for name, bits, group, loss in sorted(formats, key=lambda form: form[3]):
        weights = model["parameters"] * (bits + (16 / group if group else 0)) / 8
        if weights > room or weights / device["bandwidth"] > need["seconds"]:
            continue
        for cache, cache_bits, cache_loss in sorted(caches, key=lambda cache: cache[2]):
            kept = numbers * cache_bits / 8
            seconds = (weights + kept) / device["bandwidth"]
            if weights + kept <= room and seconds <= need["seconds"]:
                return [name, cache, weights + kept + 2 * model["table"], seconds]
        return None
    return None
