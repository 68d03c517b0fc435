# exercise: neural.gradients  fails: right  says: a gradient for each of the 3 values
from math import tanh


def gradients(tape):
    values = []
    for op, *uses in tape:
        if op == "input":
            values.append(uses[0])
        elif op == "add":
            values.append(values[uses[0]] + values[uses[1]])
        elif op == "mul":
            values.append(values[uses[0]] * values[uses[1]])
        else:
            values.append(tanh(values[uses[0]]))
    shares = [0.0] * len(tape)
    shares[-1] = 1.0
    for k in reversed(range(len(tape))):
        op, *uses = tape[k]
        if op == "add":
            shares[uses[0]] += shares[k]
            shares[uses[1]] += shares[k]
        elif op == "mul":
            shares[uses[0]] += shares[k] * values[uses[1]]
            shares[uses[1]] += shares[k] * values[uses[0]]
        elif op == "tanh":
            shares[uses[0]] += shares[k] * (1 - values[k] ** 2)
    return [g for g, step in zip(shares, tape) if step[0] == "input"]
