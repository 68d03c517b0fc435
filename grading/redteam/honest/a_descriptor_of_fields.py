# how: adds up fields that a table describes
# exercise: tensor.describe
def describe(start, leading, stride, swizzle):
    codes = dict(zip((0, 128, 64, 32), range(4), strict=True))
    fields = {0: start >> 4, 16: leading >> 4, 32: stride >> 4, 62: codes[swizzle]}
    return sum(value << bit for bit, value in fields.items())
