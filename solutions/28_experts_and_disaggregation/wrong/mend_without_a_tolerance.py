# exercise: fleet.mend  fails: right  says: first difference: `answer


def mend(c, tolerance):
    def wrong(lines):
        return [i for i, line in enumerate(lines) if abs(sum(line[:-1]) - line[-1]) > 0]

    product = [row[:-1] for row in c[:-1]]
    rows, columns = wrong(c), wrong(list(zip(*c, strict=True)))
    if rows and rows[0] < len(product) and columns[0] < len(product[0]):
        i, j = rows[0], columns[0]
        product[i][j] = c[i][-1] - sum(x for n, x in enumerate(c[i][:-1]) if n != j)
    return product
