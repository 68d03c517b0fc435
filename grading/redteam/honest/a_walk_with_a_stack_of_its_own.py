# how: an explicit stack of iterators in place of recursion
# exercise: neural.backward
def backward(parents, result):
    order, seen = [], {result}
    stack = [(result, iter(parents[result]))]
    while stack:
        value, todo = stack[-1]
        for parent in todo:
            if parent not in seen:
                seen.add(parent)
                stack.append((parent, iter(parents[parent])))
                break
        else:
            order.append(value)
            stack.pop()
    order.reverse()
    return order
