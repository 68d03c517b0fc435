# exercise: memory.sectors  fails: right  says: should be
def sectors(addresses, size):
    if not addresses:
        return 0
    return (max(addresses) + size - 1) // 32 - min(addresses) // 32 + 1
