# exercise: neural.keep  fails: last layer learns, kept of no use  says: how far back
def keep(tape, learn):
    needed, reached = set(), {len(tape) - 1}
    for value in reversed(range(len(tape))):
        op, *uses = tape[value]
        if value in reached:
            reached.update(uses)
            if op == "relu":
                needed.add(value)
            elif op in ("mul", "matmul"):
                needed.update(uses)
    return [value for value in needed if tape[value][0] != "input"]
