# exercise: kv.per_gpu  fails: right  says: a latent


def per_gpu(model, ranks):
    if "latent" in model:
        numbers = (model["latent"] + model["place"]) / ranks
    else:
        numbers = 2 * max(1, model["kv_heads"] // ranks) * model["head_dim"]
    return model["layers"] * numbers * model["bytes"]
