# exercise: triton.fuse  fails: right  says: product and an operation on whole rows
def fuse(operations, outputs):
    kernels = [[]]
    for name, what, _, _ in operations:
        if what == "matmul" and kernels[-1]:
            kernels.append([])
        if what != "input":
            kernels[-1].append(name)
        if what == "columns":
            kernels.append([])
    return [kernel for kernel in kernels if kernel]
