# how: finds what a chunk and the box share as ranges
# exercise: fleet.reads
def reads(saved, wanted):
    def shared(a, n, b, m):
        return range(max(a, b), min(a + n, b + m))

    start, size = wanted
    found = []
    for name, at, extent in saved:
        axes = [shared(at[i], extent[i], start[i], size[i]) for i in (0, 1)]
        if all(axes):
            inside = [r.start - at[i] for i, r in enumerate(axes)]
            found.append(
                (name, inside, [len(r) for r in axes], [r.start - start[i] for i, r in enumerate(axes)])
            )
    return tuple(found)
