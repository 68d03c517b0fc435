# how: tiles named by True, by 0.0 and by halves
# exercise: triton.order
# earns: 0
# slow: yes
# says: order
def order(tiles_m, tiles_n, wave):
    return [[m + 0.5, True] for m in range(tiles_m) for n in range(tiles_n)]
