# how: a lambda
# exercise: memory.sectors
sectors = lambda addresses, size: len({b // 32 for a in addresses for b in range(a, a + size)})
