# exercise: parallel.compress  fails: lost  says: add up what you send
def compress(gradient, memory, k):
    total = [g + m for g, m in zip(gradient, memory, strict=True)]
    largest = sorted(range(len(total)), key=lambda i: -abs(total[i]))[:k]
    return [[[i, total[i]] for i in largest], total]
