# how: sleeps through its time and leaves that of the next exercise
# exercise: memory.sectors
# earns: 0
# says: stopped after
# also: memory.copy 4
# limits: 60 8
import time


def sectors(addresses, size):
    time.sleep(10_000)
