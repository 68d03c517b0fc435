# how: imports that take seconds, and a pause
# exercise: memory.sectors
import time

import matplotlib.pyplot
import sympy
import torch

time.sleep(1)


def sectors(addresses, size):
    blocks = torch.tensor([[a + k for k in range(size)] for a in addresses]) // 32
    return int(torch.unique(blocks).numel())
