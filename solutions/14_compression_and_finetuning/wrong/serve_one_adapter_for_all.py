# exercise: compress.serve  fails: right  says: should be
def serve(x, weight, a, b, adapter, scale):
    return x @ weight.T + scale * (x @ a[0].T) @ b[0].T
