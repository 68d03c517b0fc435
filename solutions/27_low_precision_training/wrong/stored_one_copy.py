# exercise: bits.stored  fails: right  says: should be
import math


def stored(tokens, width, bits, rows, columns, scale_bytes):
    return tokens * width * bits // 8 + math.ceil(tokens / rows) * math.ceil(width / columns) * scale_bytes
