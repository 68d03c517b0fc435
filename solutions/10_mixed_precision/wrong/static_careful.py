# exercise: mixed.static  fails: lost values  says: 65,520
import math


def static(gradients):
    largest = max(abs(g) for g in gradients)
    return 2.0 ** math.floor(math.log2(1 / largest)) if largest else 1.0
