# exercise: triton.fuse  fails: bytes, launches  says: budget
def fuse(operations, outputs):
    kernels, kinds = [], {name: what for name, what, _, _ in operations}
    for name, what, needs, _ in operations:
        last = kernels[-1] if kernels else []
        chained = any(need in last for need in needs)
        if what == "input":
            continue
        if chained and what == "pointwise" and all(kinds[other] == "pointwise" for other in last):
            last.append(name)
        else:
            kernels.append([name])
    return kernels
