# exercise: triton.softmax_columns  fails: sectors  says: naive
import triton.language as tl

from gpulab import triton


@triton.jit
def softmax_columns_kernel(x, out, rows, columns, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)[None, :]
    inside = (i < rows) & (j < columns)
    values = tl.load(x + i * columns + j, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0)[None, :])
    tl.store(out + i * columns + j, powers / tl.sum(powers, 0)[None, :], mask=inside)


def softmax_columns(x, out):
    rows, columns = x.shape
    grid = (triton.cdiv(columns, 1),)
    softmax_columns_kernel[grid](x, out, rows, columns, BLOCK=triton.next_power_of_2(rows), WIDTH=1)
