# exercise: neural.backward  fails: visits per value  says: budget
def backward(parents, result):
    order, waiting = [], [result]
    while waiting:
        value = waiting.pop()
        order.append(value)
        for parent in parents[value]:
            if parent not in waiting:
                waiting.append(parent)
    return order
