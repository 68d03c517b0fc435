# how: names with letters outside of ASCII and comments in another language
# exercise: memory.sectors
def sectors(addresses, size):
    größe, спутник, 扇区 = size, 32, set()
    for адрес in addresses:  # каждый адрес
        扇区.update(range(адрес // спутник, (адрес + größe - 1) // спутник + 1))
    return len(扇区)
