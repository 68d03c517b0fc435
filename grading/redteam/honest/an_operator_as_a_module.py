# how: a product and a sum in place, in a class of torch.nn
# exercise: pytorch.fold
class Fold(torch.nn.Module):
    def forward(self, x, mean, std, weight, bias):
        scale = weight / std
        return torch.addcmul(bias - mean * scale, x, scale)


fold = Fold()
