# exercise: fleet.reads  fails: right  says: writes beyond the box


def reads(saved, wanted):
    (r, c), (height, width) = wanted
    pieces = []
    for name, (row, column), (h, w) in saved:
        top = max(r, row)
        rows = min(r + height, row + h) - top
        if rows > 0:
            pieces.append([name, [top - row, 0], [rows, w], [top - r, column]])
    return pieces
