# how: sorts all tiles by band and column, and deals them out
# exercise: tensor.order
def order(rows, cols, blocks):
    bands = max(1, round(rows / max(1, math.isqrt(blocks))))
    height = -(-rows // bands)
    tiles = sorted(np.ndindex(rows, cols), key=lambda at: (at[0] // height, at[1], at[0]))
    return [[(int(r), int(c)) for r, c in tiles[block::blocks]] for block in range(blocks)]
