# exercise: arch.bound  fails: right  says: first wrong: square


def bound(product, gpu):
    m, n, k = product["m"], product["n"], product["k"]
    flops = 2 * m * n * k
    moved = product["bytes"] * (m * k + k * n)
    seconds = [flops / gpu["peak"][product["dtype"]], moved / gpu["dram_bandwidth"]]
    return [flops / moved, "memory" if seconds[0] < seconds[1] else "compute", max(seconds)]
