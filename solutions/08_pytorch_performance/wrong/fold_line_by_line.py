# exercise: pytorch.fold  fails: bytes moved  says: work on a row
def fold(x, mean, std, weight, bias):
    return (x - mean) / std * weight + bias
