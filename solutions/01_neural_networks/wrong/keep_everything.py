# exercise: neural.keep  fails: all layers learn  says: naive
def keep(tape, learn):
    return [value for value, step in enumerate(tape) if step[0] != "input"]
