# exercise: experts.overlap  fails: right  says: is never done: it waits for d0.0


def overlap(layers, times):
    return [
        [f"{kind}{layer}.{batch}" for layer in range(layers) for kind in kinds for batch in (0, 1)]
        for kinds in ("EA", "DC")
    ]
