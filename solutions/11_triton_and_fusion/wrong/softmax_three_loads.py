# exercise: triton.softmax  fails: bytes moved  says: naive
import triton.language as tl

from gpulab import triton


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    largest = -float("inf")
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        largest = max(largest, tl.max(tl.load(x + row + i, mask=i < columns, other=-float("inf")), 0))
    total = 0.0
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.exp(tl.load(x + row + i, mask=i < columns, other=-float("inf")) - largest), 0)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        powers = tl.exp(tl.load(x + row + i, mask=i < columns) - largest)
        tl.store(out + row + i, powers / total, mask=i < columns)


def softmax(x, out):
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, columns, BLOCK=256)
