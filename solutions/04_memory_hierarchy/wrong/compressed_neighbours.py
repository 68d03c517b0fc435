# exercise: memory.compressed  fails: right  says: first wrong: close


def compressed(words):
    steps = [b - a for a, b in zip(words, words[1:], strict=False)]
    if not any(steps):
        return 1
    if all(-128 <= step <= 127 for step in steps):
        return 2
    return 3 if all(-32_768 <= step <= 32_767 for step in steps) else 4
