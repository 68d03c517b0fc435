# exercise: kv.runs  fails: right  says: NHD


def runs(layout, table, size, heads, d, tokens, head):
    found = []
    for token in range(-(-tokens // size) * size):
        block, slot = table[token // size], token % size
        vector = (block * size + slot) * heads + head
        if layout == "HND":
            vector = (block * heads + head) * size + slot
        if found and sum(found[-1]) == vector * d:
            found[-1][1] += d
        else:
            found.append([vector * d, d])
    return found
