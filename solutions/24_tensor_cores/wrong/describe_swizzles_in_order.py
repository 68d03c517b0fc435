# exercise: tensor.describe  fails: right  says: should be


def describe(start, leading, stride, swizzle):
    code = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
    return start // 16 | leading // 16 << 16 | stride // 16 << 32 | code << 62
