# exercise: pytorch.fold  fails: bytes moved  says: multiplies and adds at once
def fold(x, mean, std, weight, bias):
    scale = weight / std
    return x * scale + (bias - mean * scale)
