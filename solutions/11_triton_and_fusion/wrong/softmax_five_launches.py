# exercise: triton.softmax  fails: bytes moved  says: 4,326,400
import numpy as np
import triton.language as tl

from gpulab import cuda, triton


@triton.jit
def reduce_rows(x, out, columns, MAX: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + tl.program_id(0) * columns + i
    if MAX:
        found = tl.max(tl.load(at, mask=i < columns, other=-float("inf")), 0)
    else:
        found = tl.sum(tl.load(at, mask=i < columns, other=0.0), 0)
    tl.store(out + tl.program_id(0), found)


@triton.jit
def combine(x, of_rows, out, columns, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + i
    values = tl.load(x + at, mask=i < columns)
    if WHAT == "exp":
        values = tl.exp(values)
    elif WHAT == "sub":
        values -= tl.load(of_rows + tl.program_id(0))
    else:
        values /= tl.load(of_rows + tl.program_id(0))
    tl.store(out + at, values, mask=i < columns)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    of_rows = cuda.device_array(rows, np.float32)
    reduce_rows[(rows,)](x, of_rows, columns, MAX=True, BLOCK=block)
    combine[(rows,)](x, of_rows, out, columns, WHAT="sub", BLOCK=block)
    combine[(rows,)](out, of_rows, out, columns, WHAT="exp", BLOCK=block)
    reduce_rows[(rows,)](out, of_rows, columns, MAX=False, BLOCK=block)
    combine[(rows,)](out, of_rows, out, columns, WHAT="div", BLOCK=block)
