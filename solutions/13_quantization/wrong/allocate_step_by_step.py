# exercise: quant.allocate  fails: error  says: 4 layers
def allocate(sizes, errors, budget):
    choices, at, left = (2, 3, 4, 8), [0] * len(sizes), budget - 2 * sum(sizes)
    while True:
        steps = [
            ((errors[i][at[i]] - errors[i][j]) / (size * (choices[j] - choices[at[i]])), i, j)
            for i, size in enumerate(sizes)
            for j in range(at[i] + 1, 4)
            if size * (choices[j] - choices[at[i]]) <= left
        ]
        if not steps or max(steps)[0] <= 0:
            return [choices[each] for each in at]
        _, i, j = max(steps)
        left -= sizes[i] * (choices[j] - choices[at[i]])
        at[i] = j
