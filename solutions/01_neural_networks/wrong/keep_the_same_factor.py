# exercise: neural.keep  fails: right  says: is not kept
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
            needed |= {use for use in uses if use in wanted}
    return [value for value in needed if tape[value][0] != "input"]
