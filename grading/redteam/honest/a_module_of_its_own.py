# how: a torch.nn.Module that does the work, with a warning and a print
# exercise: pytorch.fold
import warnings


class Fold(torch.nn.Module):
    def forward(self, x, mean, std, weight, bias):
        warnings.warn("folding")
        print(x.shape, x.dtype)
        scale = weight / std
        return torch.addcmul(torch.addcmul(bias, mean, scale, value=-1), x, scale)


fold = Fold()
