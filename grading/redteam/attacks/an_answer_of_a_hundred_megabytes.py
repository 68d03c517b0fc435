# how: fills the record beyond its limit
# exercise: memory.sectors
# earns: 0
# slow: yes
# says: what was recorded is too large
# alone: yes
def sectors(addresses, size):
    return "4" * (100 << 20)
