# how: counts bits instead of taking logarithms
# exercise: layout.swizzle
def swizzle(row, access):
    base = access.bit_length() - 1
    return (min(128, row) // access).bit_length() - 1, base, max(7, row.bit_length() - 1) - base
