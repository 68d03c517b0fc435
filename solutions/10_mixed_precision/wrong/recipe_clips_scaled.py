# exercise: mixed.recipe  fails: wrong updates  says: naive
def recipe():
    return [
        "zero",
        "forward",
        "scale",
        "backward",
        "clip",
        "unscale",
        "check",
        "update weights",
        "update scale",
    ]
