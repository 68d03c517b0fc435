# exercise: memory.compressed  fails: right  says: first wrong: on the edge


def compressed(words):
    spread = max(words) - min(words)
    return 1 if spread == 0 else 2 if spread < 256 else 3 if spread < 65_536 else 4
