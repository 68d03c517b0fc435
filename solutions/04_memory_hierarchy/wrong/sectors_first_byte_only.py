# exercise: memory.sectors  fails: right  says: across sectors
def sectors(addresses, size):
    return len({address // 32 for address in addresses})
