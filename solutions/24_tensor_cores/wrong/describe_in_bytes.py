# exercise: tensor.describe  fails: right  says: should be


def describe(start, leading, stride, swizzle):
    code = {0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
    return start | leading << 16 | stride << 32 | code << 62  # in units of 16, says the table
