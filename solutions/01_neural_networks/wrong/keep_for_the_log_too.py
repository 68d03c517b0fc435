# exercise: neural.keep  fails: all layers learn, kept of no use  says: last value depend on that step
def keep(tape, learn):
    wanted = set(learn)
    for value, (op, *uses) in enumerate(tape):
        if wanted.intersection(uses):
            wanted.add(value)
    needed = set()
    for value in wanted:
        op, *uses = tape[value]
        if op == "relu":
            needed.add(value)
        elif op in ("mul", "matmul"):
            i, j = uses
            needed |= ({j} if i in wanted else set()) | ({i} if j in wanted else set())
    return [value for value in needed if tape[value][0] != "input"]
