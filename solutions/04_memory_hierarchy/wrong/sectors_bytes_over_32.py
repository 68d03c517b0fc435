# exercise: memory.sectors  fails: right  says: should be
def sectors(addresses, size):
    return -(-len(addresses) * size // 32)
