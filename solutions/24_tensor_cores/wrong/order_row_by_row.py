# exercise: tensor.order  fails: strips  says: naive 570


def order(rows, cols, blocks):
    tiles = [(row, col) for row in range(rows) for col in range(cols)]
    return [tiles[block::blocks] for block in range(blocks)]
