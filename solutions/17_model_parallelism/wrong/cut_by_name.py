# exercise: parallel.cut  fails: right  says: needs whole rows


def cut(modules, ranks):
    linears = [name for name, kind, *_ in modules if kind == "linear"]
    return {name: "row" if name.split()[0] in ("o", "down") else "column" for name in linears}
