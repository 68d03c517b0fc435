# exercise: neural.backward  fails: right  says: never visited
def backward(parents, result):
    seen, finished = set(), []

    def walk(value):
        seen.add(value)
        for parent in parents[value]:
            if parent not in seen and parents[parent]:
                walk(parent)
        finished.append(value)

    walk(result)
    return finished[::-1]
