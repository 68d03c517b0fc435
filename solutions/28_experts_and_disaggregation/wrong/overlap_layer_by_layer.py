# exercise: experts.overlap  fails: above the least  says: what does the network do while


def overlap(layers, times):
    return [
        [f"{kind}{layer}.{batch}" for layer in range(layers) for batch in (0, 1) for kind in kinds]
        for kinds in ("AE", "DC")
    ]
