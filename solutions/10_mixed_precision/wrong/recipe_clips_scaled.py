# exercise: mixed.recipe  fails: right  says: iteration 0
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
