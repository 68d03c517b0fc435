# exercise: mixed.recipe  fails: right  says: iteration 11
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
