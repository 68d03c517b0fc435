# exercise: mixed.recipe  fails: right  says: iteration 4, counted from 0
def recipe():
    return [
        "zero",
        "forward",
        "scale",
        "backward",
        "check",
        "update scale",
        "unscale",
        "clip",
        "update weights",
    ]
