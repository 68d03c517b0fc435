# exercise: decode.stream  fails: fits  says: What does memory hold if no layer is streamed


def stream(model, gpu, patience):
    layers, layer = model["layers"], model["layer_bytes"]
    best = (0.0, None)
    for batch in range(1, int(gpu["memory"] // model["cache_bytes"]) + 1):
        resident = min(layers, int((gpu["memory"] - batch * model["cache_bytes"]) // layer) - 2)
        if resident < 0:
            break
        moved = layers * layer + batch * model["cache_bytes"]
        work = max(moved / gpu["bandwidth"], layers * batch * model["layer_flop"] / gpu["rate"])
        time = max((layers - resident) * layer / gpu["link"], work)
        if time <= patience:
            best = max(best, (batch / time, [resident, batch]))
    return best[1]
