# exercise: triton.fuse  fails: bytes  says: 1.84
def fuse(operations, outputs):
    kind = {name: what for name, what, _, _ in operations}
    kernels, where = [], {}

    def may_join(name, needs, kernel):
        kinds = [kind[other] for other in kernel] + [kind[name]]
        if kinds.count("matmul") > 1 or ("matmul" in kinds and "rows" in kinds):
            return False
        return not any(n in kernel and (kind[n] == "columns" or kind[name] == "matmul") for n in needs)

    for name, what, needs, _ in operations:
        if what == "input":
            continue
        number = max((where[n] for n in needs if n in where), default=0)
        while number < len(kernels) and not may_join(name, needs, kernels[number]):
            number += 1
        if number == len(kernels):
            kernels.append([])
        kernels[number].append(name)
        where[name] = number
    return kernels
