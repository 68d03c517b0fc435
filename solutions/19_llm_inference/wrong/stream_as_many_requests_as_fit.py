# exercise: decode.stream  fails: right  says: one exists


def stream(model, gpu, patience):
    layers, layer, cache = model["layers"], model["layer_bytes"], model["cache_bytes"]
    best = (0.0, None)
    for resident in range(layers + 1):
        held = (resident + 2 * (resident < layers)) * layer
        batch = int((gpu["memory"] - held) // cache)
        if batch < 1:
            continue
        moved = layers * layer + batch * cache
        work = max(moved / gpu["bandwidth"], layers * batch * model["layer_flop"] / gpu["rate"])
        time = max((layers - resident) * layer / gpu["link"], work)
        if time <= patience:
            best = max(best, (batch / time, [resident, batch]))
    return best[1]
