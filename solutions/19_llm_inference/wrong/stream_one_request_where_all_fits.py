# exercise: decode.stream  fails: fits  says: What does memory hold if no layer is streamed


def stream(model, gpu, patience):
    layers, layer, cache = model["layers"], model["layer_bytes"], model["cache_bytes"]
    if layers * layer + cache <= gpu["memory"]:
        return [layers, 1]
    best = (0.0, None)
    for batch in range(1, int(gpu["memory"] // cache) + 1):
        resident = int((gpu["memory"] - batch * cache) // layer) - 2
        if resident < 0:
            break
        moved = layers * layer + batch * cache
        work = max(moved / gpu["bandwidth"], layers * batch * model["layer_flop"] / gpu["rate"])
        time = max((layers - resident) * layer / gpu["link"], work)
        if time <= patience:
            best = max(best, (batch / time, [resident, batch]))
    return best[1]
