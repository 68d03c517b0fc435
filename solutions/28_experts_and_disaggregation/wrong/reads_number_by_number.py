# exercise: fleet.reads  fails: right  says: share is one piece


def reads(saved, wanted):
    (r, c), (height, width) = wanted
    pieces = []
    for name, (row, column), (h, w) in saved:
        for i in range(max(r, row), min(r + height, row + h)):
            for j in range(max(c, column), min(c + width, column + w)):
                pieces.append([name, [i - row, j - column], [1, 1], [i - r, j - c]])
    return pieces
