# exercise: triton.order  fails: panels  says: panels
def order(tiles_m, tiles_n, wave):
    return [[m, n] for n in range(tiles_n) for m in range(tiles_m)]
