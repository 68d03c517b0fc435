# exercise: mixed.static  fails: right  says: becomes infinite
import math


def static(gradients):
    largest = max(abs(g) for g in gradients)
    return 2.0 ** math.ceil(math.log2(65504 / largest)) if largest else 1.0
