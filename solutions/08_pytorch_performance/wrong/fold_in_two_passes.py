# exercise: pytorch.fold  fails: bytes moved  says: `mul` (2 calls
def fold(x, mean, std, weight, bias):
    scale = weight / std
    return x * scale + (bias - mean * scale)
