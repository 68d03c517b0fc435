# exercise: pytorch.gradients  fails: peak memory  says: one segment needs
import torch


def gradients(weights, x):
    h = x
    for w in weights:
        h = h + torch.tanh(h @ w)
    h.square().mean().backward()
