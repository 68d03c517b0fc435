# exercise: fleet.mend  fails: right  says: first wrong: in the sums of rows


def mend(c, tolerance):
    def wrong(lines):
        return [i for i, line in enumerate(lines) if abs(sum(line[:-1]) - line[-1]) > tolerance]

    product = [row[:-1] for row in c[:-1]]
    rows, columns = wrong(c), wrong(list(zip(*c, strict=True)))
    if rows:
        i, j = min(rows[0], len(product) - 1), min(columns[0], len(product[0]) - 1)
        product[i][j] = c[i][-1] - sum(x for n, x in enumerate(c[i][:-1]) if n != j)
    return product
