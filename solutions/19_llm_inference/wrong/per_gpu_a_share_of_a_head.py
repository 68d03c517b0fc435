# exercise: kv.per_gpu  fails: right  says: one head


def per_gpu(model, ranks):
    if "latent" in model:
        numbers = model["latent"] + model["place"]
    else:
        numbers = 2 * model["kv_heads"] * model["head_dim"] / ranks
    return model["layers"] * numbers * model["bytes"]
