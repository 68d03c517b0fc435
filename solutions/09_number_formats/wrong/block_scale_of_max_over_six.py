# exercise: formats.block  fails: right  says: should be
import math


def block(values):
    magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    largest = max(abs(v) for v in values)
    power = math.ceil(math.log2(largest / 6)) if largest else -127
    codes = []
    for v in values:
        x = min(abs(v) / 2.0**power, 6)
        code = min(range(8), key=lambda c: (abs(magnitudes[c] - x), c % 2))
        codes.append(code + (8 if math.copysign(1, v) < 0 else 0))
    return [power + 127, codes]
