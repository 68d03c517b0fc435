# exercise: triton.fuse  fails: bytes, launches  says: 1.84
def fuse(operations, outputs):
    kind = {name: what for name, what, _, _ in operations}
    kernels = []

    def may_join(name, needs, kernel):
        kinds = [kind[other] for other in kernel] + [kind[name]]
        if kinds.count("matmul") > 1 or ("matmul" in kinds and "rows" in kinds):
            return False
        return not any(n in kernel and (kind[n] == "columns" or kind[name] == "matmul") for n in needs)

    for name, what, needs, _ in operations:
        if what == "input":
            continue
        if kernels and may_join(name, needs, kernels[-1]):
            kernels[-1].append(name)
        else:
            kernels.append([name])
    return kernels
