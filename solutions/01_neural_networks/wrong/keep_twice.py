# exercise: neural.keep  fails: right  says: is listed twice
def keep(tape, learn):
    return [value for value, step in enumerate(tape) if step[0] != "input" for _ in range(2)]
