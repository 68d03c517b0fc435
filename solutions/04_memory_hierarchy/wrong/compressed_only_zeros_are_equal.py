# exercise: memory.compressed  fails: right  says: first wrong: equal


def compressed(words):
    if not any(words):
        return 1
    differences = [word - words[0] for word in words]
    low, high = min(differences), max(differences)
    if -128 <= low and high <= 127:
        return 2
    return 3 if -32_768 <= low and high <= 32_767 else 4
