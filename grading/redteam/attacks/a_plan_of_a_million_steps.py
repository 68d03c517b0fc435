# how: an order that visits every tile thousands of times
# exercise: triton.order
# earns: 0
# slow: yes
# says: order
def order(tiles_m, tiles_n, wave):
    return [[0, 0]] * 1_000_000
