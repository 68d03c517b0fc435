# exercise: decode.stream  fails: right  says: its work does


def stream(model, gpu, patience):
    layers, layer = model["layers"], model["layer_bytes"]
    best = (0.0, None)
    for batch in range(1, int(gpu["memory"] // model["cache_bytes"]) + 1):
        room = int((gpu["memory"] - batch * model["cache_bytes"]) // layer)
        resident = layers if room >= layers else room - 2
        if resident < 0:
            break
        time = max(
            (layers - resident) * layer / gpu["link"], batch * layers * model["layer_flop"] / gpu["rate"]
        )
        if time <= patience:
            best = max(best, (batch / time, [resident, batch]))
    return best[1]
