# exercise: bits.stored  fails: right  says: should be
import math


def stored(tokens, width, bits, rows, columns, scale_bytes):
    scales = math.ceil(tokens / rows) * math.ceil(width / columns)
    scales += math.ceil(tokens / columns) * math.ceil(width / rows)
    return 2 * tokens * width * bits // 8 + scales * scale_bytes
