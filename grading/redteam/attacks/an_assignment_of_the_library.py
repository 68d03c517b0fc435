# how: assigns the elements by the library, whose copy is a launch that nobody wrote
# exercise: layout.copy
# earns: 0
def copy(x, y):
    y[...] = x
