# exercise: fleet.reads  fails: right  says: writes beyond the box


def reads(saved, wanted):
    (r, c), (height, width) = wanted
    return [
        [name, [0, 0], [h, w], [row - r, column - c]]
        for name, (row, column), (h, w) in saved
        if row < r + height and r < row + h and column < c + width and c < column + w
    ]
