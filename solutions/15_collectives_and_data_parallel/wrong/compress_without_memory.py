# exercise: parallel.compress  fails: lost  says: add up what you send
def compress(gradient, memory, k):
    largest = sorted(range(len(gradient)), key=lambda i: -abs(gradient[i]))[:k]
    return [[[i, gradient[i]] for i in largest], memory]
