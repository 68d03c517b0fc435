# exercise: triton.layer_norm  fails: loaded bytes  says: naive
import triton.language as tl

from gpulab import triton


@triton.jit
def layer_norm_kernel(x, weight, bias, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    inside = (i < rows) & (j < columns)
    values = tl.load(x + i * columns + j, mask=inside, other=0.0)
    mean = tl.sum(values, 1)[:, None] / columns
    centred = tl.where(j < columns, values - mean, 0.0)
    variance = tl.sum(centred * centred, 1)[:, None] / columns
    w = tl.load(weight + j, mask=j < columns)
    b = tl.load(bias + j, mask=j < columns)
    tl.store(out + i * columns + j, centred / tl.sqrt(variance + 1e-5) * w + b, mask=inside)


def layer_norm(x, weight, bias, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    layer_norm_kernel[(triton.cdiv(rows, 1),)](x, weight, bias, out, rows, columns, ROWS=1, BLOCK=block)
