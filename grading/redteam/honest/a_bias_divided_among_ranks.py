# how: each rank adds its part of the bias before the sum, in a general function of layers
# exercise: parallel.biased
def biased(x, a, a_bias, b, b_bias):
    share = b_bias / dist.get_world_size()
    layer = lambda data, weight, bias: torch.addmm(bias, data, weight)  # noqa: E731
    partial = layer(F.gelu(layer(x, a, a_bias)), b, share)
    dist.all_reduce(partial, op=dist.ReduceOp.SUM)
    return partial
