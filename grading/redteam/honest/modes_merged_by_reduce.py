# how: merges modes by functools.reduce
# exercise: layout.coalesce
from functools import reduce


def coalesce(layout):
    def merged(kept, mode):
        if mode[0] == 1:
            return kept
        if kept and kept[-1][0] * kept[-1][1] == mode[1]:
            return (*kept[:-1], (kept[-1][0] * mode[0], kept[-1][1]))
        return (*kept, tuple(mode))

    return list(reduce(merged, layout, ())) or [(1, 0)]
