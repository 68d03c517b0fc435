# exercise: mixed.recipe  fails: wrong updates  says: of 60
def recipe():
    return [
        "zero",
        "forward",
        "scale",
        "backward",
        "unscale",
        "clip",
        "update weights",
        "check",
        "update scale",
    ]
