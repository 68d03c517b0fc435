# exercise: arch.bound  fails: right  says: first wrong: square


def bound(product, gpu):
    m, n, k = product["m"], product["n"], product["k"]
    flops = m * n * k
    moved = product["bytes"] * (m * k + k * n + m * n)
    seconds = [flops / gpu["peak"][product["dtype"]], moved / gpu["dram_bandwidth"]]
    return [flops / moved, "memory" if seconds[0] < seconds[1] else "compute", max(seconds)]
