# how: one rank ends its process while the others wait for it
# exercise: collective.all_reduce
# earns: 0
# says: rank
# slow: yes
# limits: 120 15
import os


def all_reduce(x, *more):
    if dist.get_rank() == 0:
        os._exit(0)
    return x
