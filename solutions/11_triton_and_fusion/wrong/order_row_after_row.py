# exercise: triton.order  fails: panels  says: naive
def order(tiles_m, tiles_n, wave):
    return [[m, n] for m in range(tiles_m) for n in range(tiles_n)]
