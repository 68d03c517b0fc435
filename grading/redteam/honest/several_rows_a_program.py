# how: exponentials to the base of 2, a helper that is jitted, and names of its own
# exercise: triton.softmax
@triton.jit
def peak(values):
    return tl.max(values, axis=0)


@triton.jit
def rows_kernel(source, target, width, LANES: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, LANES)
    here = lanes < width
    values = tl.load(source + row * width + lanes, mask=here, other=float("-inf"))
    powers = tl.exp2((values - peak(values)) * 1.4426950408889634)
    tl.store(target + row * width + lanes, powers / tl.sum(powers, axis=0), mask=here)


def softmax(x, out):
    rows_kernel[(x.shape[0],)](x, out, x.shape[1], LANES=triton.next_power_of_2(x.shape[1]))
