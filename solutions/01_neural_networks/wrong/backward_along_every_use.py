# exercise: neural.backward  fails: visits  says: naive
def backward(parents, result):
    order = []

    def walk(value):
        order.append(value)
        for parent in parents[value]:
            walk(parent)

    walk(result)
    return order
