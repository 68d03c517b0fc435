# how: every rank returns what it hopes to be right and sends nothing
# exercise: collective.all_reduce
# earns: 0
# says: wrong on
# slow: yes


def all_reduce(x, *more):
    return torch.zeros_like(x)
