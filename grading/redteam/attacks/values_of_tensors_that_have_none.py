# how: reads the numbers out of the tensors and computes with NumPy
# exercise: pytorch.fold
# earns: 0
# says: value
def fold(x, mean, std, weight, bias):
    return torch.from_numpy((x.numpy() - mean.numpy()) / std.numpy() * weight.numpy() + bias.numpy())
