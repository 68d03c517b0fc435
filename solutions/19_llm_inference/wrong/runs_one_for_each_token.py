# exercise: kv.runs  fails: right  says: full blocks


def runs(layout, table, size, heads, d, tokens, head):
    found = []
    for token in range(tokens):
        block, slot = table[token // size], token % size
        if layout == "NHD":
            vector = (block * size + slot) * heads + head
        else:
            vector = (block * heads + head) * size + slot
        found.append([vector * d, d])
    return found
