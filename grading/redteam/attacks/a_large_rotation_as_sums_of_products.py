# how: multiplies by one matrix for all tokens, most of it zeros, as sums over all pairs
# exercise: bits.rotate
# earns: 1
# says: matrix flops
def rotate(x, dy, signs, matrix):
    tokens = x.shape[0]
    tiles = torch.eye(tokens // 16)
    whole = (tiles[:, None, :, None] * (matrix * signs)[None, :, None, :]).reshape(tokens, tokens)
    turned_x = (whole[:, :, None] * x[None]).sum(1)
    turned_dy = (whole[:, :, None] * dy[None]).sum(1)
    return turned_x, turned_dy, turned_dy.T @ turned_x
