# how: rotates both operands by themselves, by einsum
# exercise: bits.rotate
def rotate(x, dy, signs, matrix):
    turn = matrix * signs[None, :]

    def turned(a):
        return torch.einsum("ij,tjc->tic", turn, a.reshape(-1, 16, a.shape[1])).reshape(a.shape)

    turned_x, turned_dy = turned(x), turned(dy)
    return turned_x, turned_dy, torch.matmul(turned_dy.t(), turned_x)
