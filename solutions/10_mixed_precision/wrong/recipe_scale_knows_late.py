# exercise: mixed.recipe  fails: right  says: iteration 31
def recipe():
    return [
        "zero",
        "forward",
        "scale",
        "backward",
        "unscale",
        "update scale",
        "check",
        "clip",
        "update weights",
    ]
