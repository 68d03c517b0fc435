# exercise: mixed.recipe  fails: right  says: `check` is there 0 times
def recipe():
    return ["zero", "forward", "scale", "backward", "unscale", "clip", "update weights", "update scale"]
