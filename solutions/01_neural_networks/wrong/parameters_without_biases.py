# exercise: neural.parameters  fails: right  says: too few, as many as all biases
def parameters(model):
    width, hidden, biases = model["width"], model["hidden"], 0
    shared = width // model["heads"] * model["kv_heads"]
    into_hidden = 2 if model["gated"] else 1
    attention = 2 * width * width + 2 * width * shared + biases * 2 * (width + shared)
    expert = (into_hidden + 1) * width * hidden + biases * (into_hidden * hidden + width)
    router = width * model["experts"] if model["experts"] > 1 else 0
    norm = width * (2 if model["norm"] == "layer" and biases else 1)
    outside = model["vocabulary"] * width * (1 if model["tied"] else 2) + model["positions"] * width + norm
    return [
        outside + model["layers"] * (attention + router + 2 * norm + experts * expert)
        for experts in (model["experts"], model["used_experts"])
    ]
