# how: operations in place on tensors of its own, written as methods
# exercise: pytorch.fold
def fold(x: torch.Tensor, mean, std, weight, bias) -> torch.Tensor:
    with torch.no_grad():
        factor = weight.div(std)
        shift = bias.addcmul(mean, factor, value=-1)
    return torch.addcmul(input=shift, tensor1=x, tensor2=factor)
