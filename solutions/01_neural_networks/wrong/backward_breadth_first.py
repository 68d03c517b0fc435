# exercise: neural.backward  fails: right  says: yet to hand
def backward(parents, result):
    order = [result]
    for value in order:
        for parent in parents[value]:
            if parent not in order:
                order.append(parent)
    return order
