# exercise: bits.rotate  fails: matrix FLOPs  says: block-diagonal
import torch


def rotate(x, dy, signs, matrix):
    tokens = len(x)
    dense = torch.zeros(tokens, tokens)
    for k in range(0, tokens, 16):
        dense[k : k + 16, k : k + 16] = matrix * signs
    turned_x, turned_dy = dense @ x, dense @ dy
    return turned_x, turned_dy, turned_dy.T @ turned_x
