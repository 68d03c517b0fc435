# how: the m and n of a tile computed from its number, as kernels do it
# exercise: triton.order
import math


def order(tiles_m, tiles_n, wave):
    group = max(1, min(round(math.sqrt(wave)), tiles_m))
    found = []
    for number in range(tiles_m * tiles_n):
        band = number // (group * tiles_n)
        first = band * group
        rows = min(tiles_m - first, group)
        inside = number - band * group * tiles_n
        found.append((first + inside % rows, inside // rows))
    return found
