# exercise: tensor.order  fails: right  says: there are lists for


def order(rows, cols, blocks):
    return [[(row, col) for col in range(cols)] for row in range(rows)]
