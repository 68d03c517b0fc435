# how: sums that stay NumPy's own type through and through, printed on the way
# exercise: memory.ways


def ways(addresses, size):
    result = np.uint16(the_labs_own(addresses, size))
    print("ways:", result)
    return result
