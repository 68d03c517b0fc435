# exercise: tensor.order  fails: right  says: nobody makes tile


def order(rows, cols, blocks):
    tiles = [(row, col) for row in range(rows) for col in range(cols)]
    each = len(tiles) // blocks
    return [tiles[each * block : each * (block + 1)] for block in range(blocks)]
