# how: Triton works out the block from the arguments
# exercise: triton.softmax
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["columns"])})
@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=mask, other=-float("inf"))
    values -= tl.max(values, axis=0)
    top = tl.exp(values)
    tl.store(out + row * columns + offsets, top / tl.sum(top, axis=0), mask=mask)


def softmax(x, out):
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
