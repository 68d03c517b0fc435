# exercise: edge.launch  fails: right  says: first wrong: order


def launch(api, threads, block, most):
    if block[0] * block[1] * block[2] > most:
        return None
    told = [-(-n // b) for n, b in zip(threads, block)]
    if api in ("OpenCL", "SYCL"):
        told = [g * b for g, b in zip(told, block)]
    return [told[::-1], block] if api == "SYCL" else [told, block]
