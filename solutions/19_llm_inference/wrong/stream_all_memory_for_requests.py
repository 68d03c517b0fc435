# exercise: decode.stream  fails: right  says: a user waits


def stream(model, gpu, patience):
    room = gpu["memory"] - 2 * model["layer_bytes"]
    return [0, int(room // model["cache_bytes"])]
