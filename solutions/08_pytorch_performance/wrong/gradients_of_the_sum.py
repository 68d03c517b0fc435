# exercise: pytorch.gradients  fails: right  says: should be
import torch


def gradients(weights, x):
    h = x
    for w in weights:
        h = h + torch.tanh(h @ w)
    h.square().sum().backward()
