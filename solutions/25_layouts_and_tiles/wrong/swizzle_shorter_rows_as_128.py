# exercise: layout.swizzle  fails: spare bits  says: pieces of
import math


def swizzle(row, access):
    base = int(math.log2(access))
    return [int(math.log2(128 // access)), base, max(7, int(math.log2(row))) - base]
