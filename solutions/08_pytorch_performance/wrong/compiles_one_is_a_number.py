# exercise: pytorch.compiles  fails: right  says: first wrong: size 1
def compiles(shapes):
    versions, seen, found = [], None, []
    for shape in shapes:
        fits = any(all(size in (n, None) for size, n in zip(v, shape, strict=True)) for v in versions)
        found.append(not fits)
        if not fits:
            seen = (
                shape if seen is None else [a if a == n else None for a, n in zip(seen, shape, strict=True)]
            )
            versions.append(list(seen))
    return found
