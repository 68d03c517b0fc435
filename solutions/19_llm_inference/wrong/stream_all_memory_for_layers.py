# exercise: decode.stream  fails: short texts  says: could the memory of a resident layer hold


def stream(model, gpu, patience):
    room = int((gpu["memory"] - model["cache_bytes"]) // model["layer_bytes"])
    return [model["layers"] if room >= model["layers"] else room - 2, 1]
