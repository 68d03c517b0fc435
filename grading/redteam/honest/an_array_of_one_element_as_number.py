# how: sums that stay NumPy's own type through and through, printed on the way
# exercise: memory.ways
right = ways


def ways(addresses, size):
    result = np.uint16(right(addresses, size))
    print("ways:", result)
    return result
