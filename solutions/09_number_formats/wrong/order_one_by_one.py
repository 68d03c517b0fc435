# exercise: formats.order  fails: steps  says: naive
def order(n):
    return [[0, slot] for slot in range(1, n)]
