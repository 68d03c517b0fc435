# exercise: arch.bound  fails: right  says: first wrong: on the ridge


def bound(product, gpu):
    m, n, k = product["m"], product["n"], product["k"]
    peak, bandwidth = gpu["peak"][product["dtype"]], gpu["dram_bandwidth"]
    moved = product["bytes"] * (m * k + k * n + m * n)
    intensity, ridge = 2 * m * n * k / moved, peak / bandwidth
    what = "memory" if intensity <= ridge else "compute"
    return [intensity, what, max(2 * m * n * k / peak, moved / bandwidth)]
