# how: a bound method
# exercise: memory.sectors
class Memory:
    def __init__(self, sector: int = 32) -> None:
        self.sector = sector

    def touched(self, addresses, size):
        return len({byte // self.sector for a in addresses for byte in range(a, a + size)})


sectors = Memory().touched
