# exercise: bits.rotate  fails: right  says: should be
import torch


def rotate(x, dy, signs, matrix):
    turn = matrix * signs[:, None]
    both = torch.cat((x, dy), 1)
    turned = (turn @ both.view(-1, 16, both.shape[1])).view(both.shape)
    turned_x, turned_dy = turned[:, : x.shape[1]], turned[:, x.shape[1] :]
    return turned_x, turned_dy, turned_dy.T @ turned_x
