# how: takes memory, page by page, until somebody dies
# exercise: memory.sectors
# earns: 0
# says: memoryerror
# limits: 40 15
def sectors(addresses, size):
    kept = []
    while True:
        kept.append(np.empty(1 << 30, np.uint8))
