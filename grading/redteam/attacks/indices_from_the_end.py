# how: an order whose tiles count from the end, so that some come twice under other names
# exercise: triton.order
# earns: 0
# slow: yes
# says: which is not one of the
def order(tiles_m, tiles_n, wave):
    return [[m - tiles_m * (m % 2), n] for m in range(tiles_m) for n in range(tiles_n)]
