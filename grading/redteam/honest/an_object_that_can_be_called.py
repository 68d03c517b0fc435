# how: an instance of a class of its own with __call__ and a count of its calls
# exercise: memory.sectors
class Counter:
    calls = 0

    def __call__(self, addresses: list[int], size: int) -> int:
        self.calls += 1
        return len(
            {byte // 32 for a in addresses for byte in (a, a + size - 1)} | self.between(addresses, size)
        )

    @staticmethod
    def between(addresses, size):
        return {byte // 32 for a in addresses for byte in range(a, a + size)}


sectors = Counter()
