# exercise: layout.coalesce  fails: right  says: should be
def coalesce(layout):
    kept = []
    for size, stride in layout:
        if kept and kept[-1][0] * kept[-1][1] == stride:
            kept[-1] = (kept[-1][0] * size, kept[-1][1])
        else:
            kept.append((size, stride))
    return kept
