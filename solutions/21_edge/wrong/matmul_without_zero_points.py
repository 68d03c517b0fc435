# exercise: edge.matmul  fails: right  says: first wrong: zero points


def matmul(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero):
    factor = a_scale * b_scale / c_scale
    rows = []
    for row in a:
        sums = [sum(x * b[k][n] for k, x in enumerate(row)) for n in range(len(b[0]))]
        rows.append([min(255, max(0, round(total * factor) + c_zero)) for total in sums])
    return rows
