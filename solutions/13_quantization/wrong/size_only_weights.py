# exercise: quant.size  fails: right  says: should be
import math


def size(entries):
    widths = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int8": 1, "uint8": 1, "bool": 1}
    kept = {e[3]: math.prod(e[1]) * widths[e[2]] for e in entries if e[0].endswith(("weight", "bias"))}
    return sum(kept.values())
