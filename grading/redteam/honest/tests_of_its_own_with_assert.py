# how: tests its helper with assert, under the usual guard, and prints a table
# exercise: memory.sectors
def sectors(addresses, size):
    """Counts 32-byte sectors.

    >>> sectors([0, 4, 8], 4)
    1
    """
    return len(
        {s for a in addresses for s in (a // 32, (a + size - 1) // 32)}
        if size <= 32
        else {s for a in addresses for s in range(a // 32, (a + size - 1) // 32 + 1)}
    )


assert sectors([0], 4) == 1
assert sectors(range(0, 128, 4), 4) == 4, "a warp of neighbours"
if __name__ == "__main__":
    for stride in (1, 2, 8):
        print(f"{stride:>3}: {sectors([4 * stride * i for i in range(32)], 4):>3}")
