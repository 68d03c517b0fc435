# exercise: parallel.cut  fails: weights held  says: %


def cut(modules, ranks):
    return {name: "whole" for name, kind, *_ in modules if kind == "linear"}
