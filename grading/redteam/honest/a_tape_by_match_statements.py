# how: a match statement for the operations, and the gradients collected in a dictionary
# exercise: neural.gradients
import math
from collections import defaultdict


def gradients(tape):
    values = []
    for record in tape:
        match record:
            case ["input", x]:
                values.append(x)
            case ["add", i, j]:
                values.append(values[i] + values[j])
            case ["mul", i, j]:
                values.append(values[i] * values[j])
            case [_, i]:
                values.append(math.tanh(values[i]))
    grad = defaultdict(float)
    grad[len(tape) - 1] = 1.0
    for k, record in reversed(list(enumerate(tape))):
        g = grad[k]
        match record:
            case ["add", i, j]:
                grad[i] += g
                grad[j] += g
            case ["mul", i, j]:
                grad[i] += g * values[j]
                grad[j] += g * values[i]
            case ["tanh", i]:
                grad[i] += g * (1 - values[k] * values[k])
    return [grad[k] for k in range(len(tape))]
