# exercise: memory.ways  fails: right  says: wide
def ways(addresses, size):
    words_of_bank = [set() for _ in range(32)]
    for address in addresses:
        if address is not None:
            words_of_bank[address // 4 % 32].add(address // 4)
    return max(len(words) for words in words_of_bank)
