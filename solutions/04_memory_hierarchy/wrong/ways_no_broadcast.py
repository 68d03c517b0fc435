# exercise: memory.ways  fails: right  says: same word
def ways(addresses, size):
    wavefronts = 0
    group = 32 * 4 // size
    for first in range(0, 32, group):
        lanes_of_bank = [0] * 32
        for address in addresses[first : first + group]:
            if address is not None:
                for word in range(address // 4, (address + size) // 4):
                    lanes_of_bank[word % 32] += 1
        wavefronts += max(lanes_of_bank)
    return wavefronts
