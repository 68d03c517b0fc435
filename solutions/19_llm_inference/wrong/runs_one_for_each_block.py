# exercise: kv.runs  fails: right  says: one head


def runs(layout, table, size, heads, d, tokens, head):
    found = []
    for i, block in enumerate(table):
        filled = min(size, tokens - i * size)
        if heads == 1 or layout == "HND":
            found.append([(block * heads + head) * size * d, filled * d])
        else:
            found += [[((block * size + slot) * heads + head) * d, d] for slot in range(filled)]
    return found
