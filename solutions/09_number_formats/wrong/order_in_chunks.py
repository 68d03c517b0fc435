# exercise: formats.order  fails: steps  says: budget
def order(n):
    chunk = 128
    plan = [[first, slot] for first in range(0, n, chunk) for slot in range(first + 1, min(first + chunk, n))]
    return plan + [[0, first] for first in range(chunk, n, chunk)]
