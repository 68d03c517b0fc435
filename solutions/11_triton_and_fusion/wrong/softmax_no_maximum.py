# exercise: triton.softmax  fails: right  says: out[
import triton.language as tl

from gpulab import triton


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + i
    values = tl.load(x + at, mask=i < columns, other=-float("inf"))
    powers = tl.exp(values)
    tl.store(out + at, powers / tl.sum(powers, 0), mask=i < columns)


def softmax(x, out):
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
