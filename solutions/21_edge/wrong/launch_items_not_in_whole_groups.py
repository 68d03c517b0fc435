# exercise: edge.launch  fails: right  says: first wrong: items


def launch(api, threads, block, most):
    if block[0] * block[1] * block[2] > most:
        return None
    groups = [-(-n // b) for n, b in zip(threads, block)]
    told = threads if api in ("OpenCL", "SYCL") else groups
    return [told[::-1], block[::-1]] if api == "SYCL" else [told, block]
