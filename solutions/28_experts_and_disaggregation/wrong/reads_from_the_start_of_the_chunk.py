# exercise: fleet.reads  fails: right  says: of the matrix to the place of


def reads(saved, wanted):
    (r, c), (height, width) = wanted
    pieces = []
    for name, (row, column), (h, w) in saved:
        top, left = max(r, row), max(c, column)
        rows, columns = min(r + height, row + h) - top, min(c + width, column + w) - left
        if rows > 0 and columns > 0:
            pieces.append([name, [0, 0], [rows, columns], [top - r, left - c]])
    return pieces
