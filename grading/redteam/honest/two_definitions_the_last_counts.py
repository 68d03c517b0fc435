# how: a first try that is wrong, kept above the one that counts, and a cell that ends in an expression
# exercise: memory.sectors
def sectors(addresses, size):
    return size


assert sectors([0], 4) == 4


def sectors(addresses, size):
    return len({b // 32 for a in addresses for b in range(a, a + size)})


sectors([0, 32], 4)
