# exercise: bits.rotate  fails: launches  says: tiles
import torch


def rotate(x, dy, signs, matrix):
    turn = matrix * signs
    turned_x = torch.cat([turn @ tile for tile in x.split(16)])
    turned_dy = torch.cat([turn @ tile for tile in dy.split(16)])
    return turned_x, turned_dy, turned_dy.T @ turned_x
