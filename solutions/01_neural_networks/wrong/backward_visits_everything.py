# exercise: neural.backward  fails: visits of no use  says: depend on every value
def backward(parents, result):
    uses = [0] * len(parents)
    for mine in parents:
        for parent in mine:
            uses[parent] += 1
    order = [value for value in range(len(parents)) if not uses[value]]
    for value in order:
        for parent in parents[value]:
            uses[parent] -= 1
            if not uses[parent]:
                order.append(parent)
    return order
