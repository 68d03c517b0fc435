# exercise: pytorch.compiles  fails: right  says: first wrong: two axes
def compiles(shapes):
    versions, found = [], []
    for shape in shapes:
        fits = any(
            all(size == n or (size is None and n > 1) for size, n in zip(v, shape, strict=True))
            for v in versions
        )
        found.append(not fits)
        if not fits:
            versions.append([n if not versions or n == 1 else None for n in shape])
    return found
