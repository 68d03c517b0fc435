# how: fills the record beyond its limit
# exercise: memory.sectors
# earns: 0
# slow: yes
# says: the process ended
# alone: yes
def sectors(addresses, size):
    return "4" * (100 << 20)
