# exercise: layout.coalesce  fails: right  says: should be
def coalesce(layout):
    kept = []
    for size, stride in sorted(layout, key=lambda mode: mode[1]):
        if size == 1:
            continue
        if kept and kept[-1][0] * kept[-1][1] == stride:
            kept[-1] = (kept[-1][0] * size, kept[-1][1])
        else:
            kept.append((size, stride))
    return kept or [(1, 0)]
