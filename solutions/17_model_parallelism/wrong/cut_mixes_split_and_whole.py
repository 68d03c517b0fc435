# exercise: parallel.cut  fails: right  says: which is whole
import itertools


def cut(modules, ranks):
    linears = [name for name, kind, *_ in modules if kind == "linear"]
    best, least = None, float("inf")
    for wishes in itertools.product(("column", "whole"), repeat=len(linears)):
        wish = dict(zip(linears, wishes, strict=True))
        split, ways, held = {"x": False}, {}, 0
        for name, kind, inputs, size in modules:
            states = {split[each] for each in inputs}
            if kind == "linear":
                ways[name] = "row" if True in states else wish[name]
                split[name] = ways[name] == "column"
                if split[name] and size[1] % ranks:
                    break
                held += size[0] * size[1] / (1 if ways[name] == "whole" else ranks)
            else:
                refused = kind == "rows" or (kind == "heads" and size % ranks)
                if True in states and refused:
                    break
                split[name] = True in states
        else:
            if held < least:
                best, least = ways, held
    return best
