# how: floods both outputs
# exercise: memory.sectors
# earns: 0
# slow: yes
# says: should be
# also: memory.copy 4
# limits: 40 6
import os
import sys

for _ in range(300):
    os.write(1, b"full marks\n" * 50_000)
    os.write(2, b"\x1b[2J" * 100_000)
print("3 of 3" * 1_000_000, file=sys.stderr)


def sectors(addresses, size):
    return 4
