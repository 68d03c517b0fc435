# exercise: edge.launch  fails: right  says: first wrong: too large


def launch(api, threads, block, most):
    told = [-(-n // b) for n, b in zip(threads, block)]
    if api in ("OpenCL", "SYCL"):
        told = [g * b for g, b in zip(told, block)]
    return [told[::-1], block[::-1]] if api == "SYCL" else [told, block]
