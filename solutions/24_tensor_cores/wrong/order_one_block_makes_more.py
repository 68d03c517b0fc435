# exercise: tensor.order  fails: waves  says: budget


def order(rows, cols, blocks):
    tiles = [(row, col) for row in range(rows) for col in range(cols)]
    lists = [tiles[block::blocks] for block in range(blocks)]
    lists[0] += [lists[-1].pop()]
    return lists
