# exercise: experts.overlap  fails: above the least  says: the worst is


def overlap(layers, times):
    return [
        [f"{kind}{layer}.{batch}" for batch in (0, 1) for layer in range(layers) for kind in kinds]
        for kinds in ("AE", "DC")
    ]
