# exercise: triton.order  fails: right  says: no program computes tile
def order(tiles_m, tiles_n, wave):
    group = max(1, round(wave**0.5))
    return [
        [first + m, n]
        for first in range(0, tiles_m - group + 1, group)
        for n in range(tiles_n)
        for m in range(group)
    ]
