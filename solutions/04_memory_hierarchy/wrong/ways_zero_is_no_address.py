# exercise: memory.ways  fails: right  says: some lanes
def ways(addresses, size):
    wavefronts = 0
    group = 32 * 4 // size
    for first in range(0, 32, group):
        words_of_bank = [set() for _ in range(32)]
        for address in addresses[first : first + group]:
            if address:
                for word in range(address // 4, (address + size) // 4):
                    words_of_bank[word % 32].add(word)
        wavefronts += max(len(words) for words in words_of_bank)
    return wavefronts
