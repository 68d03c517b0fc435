# exercise: pytorch.compiles  fails: right  says: first wrong: one axis
def compiles(shapes):
    return [shape not in shapes[:i] for i, shape in enumerate(shapes)]
