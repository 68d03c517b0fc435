# exercise: layout.swizzle  fails: bank conflicts  says: meet in one bank
import math


def swizzle(row, access):
    base = int(math.log2(access))
    return [int(math.log2(min(128, row) // access)), base, 7 - base]
