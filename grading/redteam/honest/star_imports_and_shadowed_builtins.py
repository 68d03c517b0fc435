# how: star imports, and a variable called len
# exercise: memory.sectors
# alone: yes
from itertools import *
from math import *

from numpy import *


def sectors(addresses, size):
    len = set(chain.from_iterable(range(a // 32, (a + size - 1) // 32 + 1) for a in addresses))
    return len.__len__()
