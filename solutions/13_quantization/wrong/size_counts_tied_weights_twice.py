# exercise: quant.size  fails: right  says: should be
import math


def size(entries):
    widths = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int8": 1, "uint8": 1, "bool": 1}
    return sum(math.prod(shape) * widths[dtype] for _, shape, dtype, _ in entries)
