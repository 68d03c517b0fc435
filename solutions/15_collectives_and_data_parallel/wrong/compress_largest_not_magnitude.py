# exercise: parallel.compress  fails: still held  says: make the memory smallest
def compress(gradient, memory, k):
    total = [g + m for g, m in zip(gradient, memory, strict=True)]
    largest = sorted(range(len(total)), key=lambda i: -total[i])[:k]
    sent = [[i, total[i]] for i in largest]
    for i in largest:
        total[i] = 0.0
    return [sent, total]
